// Notices when two sources disagree for too long.

const PATIENCE_MS = 2500;
const MOST = 16;

/** Calls `act` after a lasting disagreement, with longer intervals each time it did not help. */
export class Watchdog {
  #act;
  #timer = 0;
  #factor = 1;

  constructor(act) {
    this.#act = act;
  }

  observe(agree) {
    if (agree) this.rest();
    else if (!this.#timer) this.#timer = setTimeout(() => this.#bark(), PATIENCE_MS * this.#factor);
  }

  rest() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#factor = 1;
  }

  #bark() {
    this.#timer = 0;
    this.#factor = Math.min(this.#factor * 2, MOST);
    this.#act();
  }
}
