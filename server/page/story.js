// What is shown of a conversation: its stored turns, then the last one that was streamed to us.
import { History } from './history.js';
import * as transcript from './transcript.js';
import { Turn } from './turn.js';

export class Story {
  #history = new History();
  #turn = null; // the last turn that was streamed to us
  #prompt; // the last one that was streamed to us

  /** Shows stored turns and nothing else: `older` nodes above them, `pending` ones below. */
  show(window, older, pending) {
    this.#history = new History();
    this.#turn = null;
    this.#prompt = undefined;
    this.#history.prepend(window);
    transcript.show(...older, this.#history.node, ...pending);
  }

  /** Adds a window of older chunks. */
  prepend(window) {
    transcript.above(() => this.#history.prepend(window));
  }

  /** The `seq` of the first chunk that is shown. */
  get oldest() {
    return this.#history.oldest;
  }

  /** Whether a turn is being streamed. */
  get isRunning() {
    return this.#turn !== null && !this.#turn.sealed;
  }

  /** The id of the last turn that was streamed. */
  get turnId() {
    return this.#turn?.id;
  }

  /** The last prompt, as far as it is known here. */
  get prompt() {
    return this.#prompt ?? this.#history.lastPrompt;
  }

  /** Whether nothing was streamed and the stored turns end with a prompt. */
  get endsWithPrompt() {
    return !this.#turn && this.#history.last?.role === 'user';
  }

  /** The id of the last turn when it can be tried again. */
  get unfinished() {
    if (!this.#turn) return this.#history.unfinishedTurn;
    return this.#turn.failed || this.#turn.aborted ? this.#turn.id : null;
  }

  /** A turn begins; one that is shown already is replayed, and shown afresh in its place. */
  begin(event) {
    const turn = new Turn(event);
    this.#prompt = event.text ?? this.#prompt;
    if (this.#turn?.id === turn.id) this.#turn.node.replaceWith(turn.node);
    else {
      if (event.retryOf !== undefined) (this.#turn ?? this.#history).replace();
      transcript.append(turn.node);
    }
    this.#turn = turn;
  }

  /** An event of the turn that is shown. False when it is of another one. */
  receive(event) {
    if (event.turnId !== undefined && event.turnId !== this.#turn?.id) return false;
    this.#turn?.receive(event);
    return true;
  }

  /** Brings the running turn up to date. */
  flush(isWaiting) {
    this.#turn?.flush();
    this.#turn?.waiting(isWaiting);
  }
}
