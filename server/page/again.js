// The offer to send a prompt again that got no answer.
import { element } from './element.js';
import * as transcript from './transcript.js';

export class Again {
  #node = null;

  /** `onAgain(prompt)` */
  constructor(onAgain) {
    this.onAgain = onAgain;
  }

  /** Offers it at the end of the transcript; without a prompt there is nothing to offer. */
  offer(prompt) {
    if (prompt === null) {
      this.#node?.remove();
      this.#node = null;
    } else if (!this.#node) {
      const button = element('button', { type: 'button', className: 'button' }, 'Try again');
      button.addEventListener('click', () => this.onAgain(prompt));
      this.#node = element('div', { className: 'again' }, button);
      transcript.append(this.#node);
    }
  }
}
