// What is shown of a conversation: its stored turns, followed by the last streamed turn.
import { History } from './history.js';
import { keepEdits } from './revise.js';
import * as transcript from './transcript.js';
import { Turn } from './turn.js';

export class Timeline {
  #history = new History();
  #turn = null; // the last turn that was streamed to us
  #prompt; // the last one that was streamed to us
  #folded = null; // the mark of the turn that is shown
  #hasOlder = false; // streamed turns before that one are shown, of which the chunks are not known

  /** Shows only stored turns of the conversation `id`, with `older` nodes above and `pending` ones below. */
  show(id, window, older, pending) {
    this.#history = new History();
    this.#turn = null;
    this.#prompt = undefined;
    this.#hasOlder = false;
    this.#folded = null;
    this.#history.prepend(window);
    keepEdits(id, () => transcript.show(...older, this.#history.node, ...pending));
  }

  /** Adds a window of older chunks. */
  prepend(window) {
    transcript.above(() => this.#history.prepend(window));
  }

  /** The `seq` of the first chunk shown. */
  get oldest() {
    return this.#history.oldest;
  }

  /** Whether a turn is being streamed. */
  get isRunning() {
    return this.#turn !== null && !this.#turn.sealed;
  }

  /** The id of the last streamed turn. */
  get turnId() {
    return this.#turn?.id;
  }

  /** The last prompt, if known. */
  get prompt() {
    return this.#prompt ?? this.#history.lastPrompt;
  }

  /** Whether nothing was streamed and the stored turns end with a prompt. */
  get endsWithPrompt() {
    return !this.#turn && this.#history.last?.role === 'user';
  }

  /** The id of the last turn, if it can be repeated. */
  get unfinished() {
    if (!this.#turn) return this.#history.unfinishedTurn;
    return this.#turn.failed || this.#turn.aborted ? this.#turn.id : null;
  }

  /** A turn begins. One that is already shown is replayed: it is shown again from the start, in its place. */
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

  /** The last turn is repeated before any of it was kept, or nothing is known about what was. */
  #replaceLast(turnId) {
    if (this.unfinished === turnId) (this.#turn ?? this.#history).replace();
  }

  /** A turn supersedes stored chunks. Has no further effect if repeated in a replay. */
  #supersede({ type, supersedes }) {
    if (type !== 'turn-start' || supersedes === undefined || this.#hasOlder || this.#folded === supersedes) return;
    this.#folded = supersedes;
    this.#history.fold(supersedes);
  }

  /** Whether an event supersedes something shown whose chunks are unknown, so that everything must be loaded again. */
  mustReload({ type, turnId, retryOf, supersedes }) {
    if (type !== 'turn-start' || supersedes === undefined || !this.#turn) return false;
    if (this.#turn.id === turnId) return this.#hasOlder && retryOf === undefined;
    return retryOf === undefined || this.unfinished !== retryOf || this.#turn.hasCards;
  }

  /** Whether the shown turn superseded stored chunks, and ended before any of it was kept. */
  get replacedForNothing() {
    return this.#folded !== null && this.#turn !== null && this.#turn.sealed && this.#turn.isBlank;
  }

  /** The id of the last turn, if known. */
  get lastTurn() {
    return this.#turn?.id ?? this.#history.lastTurn;
  }

  /** Handles an event of the shown turn. Returns false if it belongs to another turn. */
  receive(event) {
    if (event.turnId !== undefined && event.turnId !== this.#turn?.id) return false;
    this.#turn?.receive(event);
    if (event.turnId !== undefined) this.#supersede(event);
    return true;
  }

  /** Updates the running turn. */
  flush(isWaiting) {
    this.#turn?.flush();
    this.#turn?.waiting(isWaiting);
  }
}
