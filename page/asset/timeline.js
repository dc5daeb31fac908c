// What is shown of a conversation: its stored turns, then the last one that was streamed to us.
import { History } from './history.js';
import * as transcript from './transcript.js';
import { Turn } from './turn.js';

export class Story {
  #history = new History();
  #turn = null; // the last turn that was streamed to us
  #prompt; // the last one that was streamed to us
  #folded = null; // the mark of the turn that is shown
  #hasOlder = false; // streamed turns before that one are shown, of which the chunks are not known

  /** Shows stored turns and nothing else: `older` nodes above them, `pending` ones below. */
  show(window, older, pending) {
    this.#history = new History();
    this.#turn = null;
    this.#prompt = undefined;
    this.#hasOlder = false;
    this.#folded = null;
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
      if (this.#turn) this.#hasOlder = true;
      if (event.retryOf !== undefined && event.supersedes === undefined) this.#replaceLast(event.retryOf);
      else if (event.retryOf !== undefined) this.#turn?.replace();
      transcript.append(turn.node);
    }
    this.#turn = turn;
    this.#supersede(event);
  }

  /** The last turn is tried again before anything of it was kept, or nothing is known of what was. */
  #replaceLast(turnId) {
    if (this.unfinished === turnId) (this.#turn ?? this.#history).replace();
  }

  /** A turn replaces what is stored; once, however often it is replayed. */
  #supersede({ type, supersedes }) {
    if (type !== 'turn-start' || supersedes === undefined || this.#hasOlder || this.#folded === supersedes) return;
    this.#folded = supersedes;
    this.#history.fold(supersedes);
  }

  /** Whether an event replaces what is shown here without its chunks: then all is to be loaded again. */
  mustReload({ type, turnId, retryOf, supersedes }) {
    if (type !== 'turn-start' || supersedes === undefined || !this.#turn) return false;
    if (this.#turn.id === turnId) return this.#hasOlder && retryOf === undefined;
    return retryOf === undefined || this.unfinished !== retryOf || this.#turn.hasCards;
  }

  /** Whether the turn that is shown replaced what is stored, and ended before anything of it was kept. */
  get replacedForNothing() {
    return this.#folded !== null && this.#turn !== null && this.#turn.sealed && this.#turn.isBlank;
  }

  /** The id of the last turn, as far as it is known here. */
  get lastTurn() {
    return this.#turn?.id ?? this.#history.lastTurn;
  }

  /** An event of the turn that is shown. False when it is of another one. */
  receive(event) {
    if (event.turnId !== undefined && event.turnId !== this.#turn?.id) return false;
    this.#turn?.receive(event);
    if (event.turnId !== undefined) this.#supersede(event);
    return true;
  }

  /** Brings the running turn up to date. */
  flush(isWaiting) {
    this.#turn?.flush();
    this.#turn?.waiting(isWaiting);
  }
}
