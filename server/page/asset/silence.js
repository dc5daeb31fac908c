// The line about a silent provider.
import { byId } from './element.js';
import { passFocus } from './focus.js';
import { clock, wait } from './wording.js';

const node = byId('silence');
const line = byId('silence-line');
const button = byId('ask-again');

const CONTENT = new Set(['text-delta', 'reasoning-delta', 'tool-call']);
/** Events that do not end the silence. */
const UNRELATED = new Set(['queue-changed', 'tool-output', 'tool-result', 'usage']);

/** Shows the silence of one conversation's provider. */
export class Silence {
  isShown = false;
  #hasContent = false; // something of the running step was shown: it is not asked again
  #since = 0; // epoch milliseconds of this machine's clock
  #until; // when the call is given up
  #alive = false;
  #timer = 0;
  #isPressed = false;
  #isOffline = false;

  /** `clockAhead()`: milliseconds by which the server's clock is ahead of ours. */
  constructor({ onAskAgain, clockAhead }) {
    this.clockAhead = clockAhead;
    button.addEventListener('click', onAskAgain);
  }

  receive(event) {
    if (event.type === 'provider-silent') return this.#begin(event);
    if (UNRELATED.has(event.type) || (event.type === 'status' && !event.retry)) return;
    this.#hasContent = CONTENT.has(event.type) || (this.#hasContent && event.type === 'steering');
    this.hide();
  }

  /** The command that has not taken effect yet, if any. */
  set pressed(type) {
    this.#isPressed = type === 'retry.now';
    this.#tick();
  }

  /** Whether there is a connection to the server. */
  set isOffline(is) {
    this.#isOffline = is;
    this.#tick();
  }

  hide() {
    this.isShown = false;
    clearInterval(this.#timer);
    passFocus(node);
    node.hidden = true;
  }

  #begin({ silentMs, givesUpAt, alive }) {
    const isNews = !this.isShown;
    this.isShown = true;
    this.#since = Date.now() - silentMs;
    this.#until = givesUpAt;
    this.#alive = alive;
    node.hidden = false;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#tick(), 1000);
    this.#tick();
    if (isNews) byId('announcer').textContent = line.textContent; // said once, not every second
  }

  #tick() {
    if (!this.isShown) return;
    const since = wait(Math.floor((Date.now() - this.#since) / 1000));
    const what = this.#hasContent ? 'Nothing more' : 'No answer';
    const open = this.#alive ? ' (the connection is open)' : '';
    const end = this.#until === undefined ? '' : `; gives up at ${clock(this.#until - this.clockAhead())}`;
    const text = `${what} for ${since}${open}${end}`;
    if (line.textContent !== text) line.textContent = text;
    if (this.#isPressed || this.#isOffline) passFocus(button);
    button.hidden = this.#hasContent || this.#isOffline;
    button.disabled = this.#isPressed;
    button.textContent = this.#isPressed ? 'Asking again…' : 'Ask again now';
  }
}
