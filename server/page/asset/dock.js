// The part of the running turn shown between the transcript and the message field.

/** Banner, silence and queue of the open conversation. */
export class Dock {
  #banner;
  #silence;
  #queue;

  constructor({ banner, silence, queue }) {
    this.#banner = banner;
    this.#silence = silence;
    this.#queue = queue;
  }

  receive(event) {
    this.#banner.receive(event);
    this.#silence.receive(event);
    this.#queue.receive(event);
  }

  /** Shows the retry of a status, for a page that was opened later. */
  restore(retry) {
    if (retry) this.#banner.restore(retry);
  }

  hide() {
    this.#banner.hide();
    this.#silence.hide();
    this.#queue.hide();
  }

  /** Whether there is a connection to the server. */
  set isOffline(is) {
    this.#banner.isOffline = is;
    this.#silence.isOffline = is;
  }

  /** The command that has not taken effect yet, if any. */
  set pressed(type) {
    this.#banner.pressed = type;
    this.#silence.pressed = type;
  }

  /** Whether the turn waits for the provider: for its next retry, for the answer to one, or in silence. */
  get isPausing() {
    return this.#banner.stage !== null || this.#silence.isShown;
  }

  /** Whether the turn waits for its next retry. */
  get isWaiting() {
    return this.#banner.isWaiting;
  }

  /** The rest of the wait in a few characters; undefined if there is none. */
  get left() {
    return this.#banner.left;
  }

  /** When the wait ends, by the server's clock. */
  get waitsUntil() {
    return this.#banner.waitsUntil;
  }

  /** Identifies the state of the running step's retries; null if there are none. */
  get retry() {
    return this.#banner.stage;
  }

  /** Identifies the state of the running step; changes with every effect of *retry now*. */
  get stage() {
    return `${this.#banner.stage} ${this.#silence.isShown}`;
  }
}
