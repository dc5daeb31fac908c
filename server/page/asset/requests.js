// Requests for the same thing, whose answers may overtake each other.
export class Requests {
  #begun = 0;
  #known = 0; // the latest request whose answer came, or that was outdated

  /** Begins a request. The result tells whether its answer is news: none to a later request came before it. */
  begin() {
    const number = (this.#begun += 1);
    return () => {
      if (number <= this.#known) return false;
      this.#known = number;
      return true;
    };
  }

  /** Something was changed here that the answers under way may not know of. */
  outdate() {
    this.#known = this.#begun;
  }
}
