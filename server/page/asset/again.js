// The offer to repeat a turn that ended in an error or was stopped.
import { modelChoice } from './choice.js';
import { element } from './element.js';
import { passFocus } from './focus.js';
import * as transcript from './transcript.js';

export class Again {
  #node = null;
  #turnId = null;
  #button;
  #choice;
  #why;

  /** `onAgain(turnId, model)`; `model` only if one was chosen. */
  constructor(onAgain) {
    this.onAgain = onAgain;
  }

  /** Shows the offer at the end of the transcript; null hides it. */
  offer(turnId) {
    if (this.#turnId === turnId && (!this.#node || this.#node.isConnected)) return;
    this.#turnId = turnId;
    if (this.#node) passFocus(this.#node);
    this.#node?.remove();
    this.#node = null;
    if (turnId === null) return;
    this.#button = element('button', { type: 'button', className: 'button' }, 'Try again');
    this.#button.addEventListener('click', () => this.onAgain(turnId));
    this.#choice = modelChoice('Try again with …', (model) => this.onAgain(turnId, model));
    this.#why = element('p', { className: 'note', role: 'alert' });
    this.#node = element('div', { className: 'again' }, this.#button, this.#choice, this.#why);
    transcript.append(this.#node);
  }

  /** The command that has not taken effect yet, if any. */
  set pressed(type) {
    if (!this.#node) return;
    const isPressed = type === 'chat.retry';
    if (isPressed) {
      passFocus(this.#button);
      this.#why.textContent = '';
    }
    this.#button.disabled = this.#choice.disabled = isPressed;
    this.#button.textContent = isPressed ? 'Trying again…' : 'Try again';
  }

  /** The server refused the command. */
  refused(why) {
    if (this.#node) this.#why.textContent = why;
  }
}
