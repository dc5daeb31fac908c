// What is shown of the running turn between the transcript and the message field.

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

  /** The retries as the status has them, for who comes later. */
  restore(retry) {
    if (retry) this.#banner.restore(retry);
  }

  hide() {
    this.#banner.hide();
    this.#silence.hide();
    this.#queue.hide();
  }

  /** The command whose effect is still to come, if any. */
  set pressed(type) {
    this.#banner.pressed = type;
    this.#silence.pressed = type;
  }

  /** Whether the turn waits for its next retry. */
  get isWaiting() {
    return this.#banner.isWaiting;
  }

  /** What is left of the wait, in a few characters; undefined without one. */
  get left() {
    return this.#banner.left;
  }

  /** When that is, by the server's clock. */
  get waitsUntil() {
    return this.#banner.waitsUntil;
  }

  /** Where the retries of the running step are; null when there are none. */
  get retry() {
    return this.#banner.stage;
  }

  /** Where the running step is: changes with whatever *retry now* does. */
  get stage() {
    return `${this.#banner.stage} ${this.#silence.isShown}`;
  }
}
