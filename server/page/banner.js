// The countdown of a provider retry.
import { byId } from './element.js';
import { failure, wait } from './wording.js';

const banner = byId('banner');
const line = byId('wait-line');
const note = byId('wait-note');
const message = byId('wait-message');
const ring = banner.querySelector('.ring');
const retryNow = byId('retry-now');
const cancel = byId('retry-cancel');

/** Events after which nobody waits any more. */
const ENDS = new Set([
  'text-delta',
  'reasoning-delta',
  'tool-call',
  'retry-ended',
  'error',
  'done',
  'turn-sealed',
  'user-message',
]);

/** Shows the wait of one conversation. */
export class Banner {
  waiting = false;
  #timer = 0;
  #what = '';
  #until = 0; // epoch milliseconds of this machine's clock
  #total = 0;

  /** `clockAhead()`: by how many milliseconds the server's clock is ahead of ours. */
  constructor({ onRetryNow, onCancel, clockAhead }) {
    this.clockAhead = clockAhead;
    retryNow.addEventListener('click', () => {
      this.#until = 0;
      this.#tick();
      onRetryNow();
    });
    cancel.addEventListener('click', () => {
      cancel.disabled = true;
      onCancel();
    });
  }

  receive(event) {
    if (event.type === 'provider-retry') this.#begin(event);
    else if (this.waiting && ENDS.has(event.type)) this.hide();
  }

  hide() {
    this.waiting = false;
    clearInterval(this.#timer);
    if (banner.contains(document.activeElement)) byId('scroll').focus({ preventScroll: true });
    banner.hidden = true;
  }

  #begin(event) {
    this.waiting = true;
    this.#what = failure(event);
    this.#total = event.delayMs;
    // A replayed event may be old: then `nextAt` tells what is left. No clock can make it longer than was decided.
    const left = event.nextAt === undefined ? event.delayMs : event.nextAt - this.clockAhead() - Date.now();
    this.#until = Date.now() + Math.min(left, event.delayMs);
    note.textContent = [
      event.maxAttempts === undefined
        ? `Retry ${event.attempt + 1}`
        : `Retry ${event.attempt + 1} of ${event.maxAttempts}`,
      event.target,
      event.hinted && 'the provider asked for this wait',
    ]
      .filter(Boolean)
      .join(' · ');
    message.textContent = event.message;
    banner.hidden = false;
    cancel.disabled = false;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#tick(), 250);
    this.#tick();
    byId('announcer').textContent = line.textContent; // said once per retry, not every second
  }

  #tick() {
    const left = Math.max(0, this.#until - Date.now());
    const text = left > 0 ? `retrying in ${wait(Math.ceil(left / 1000))}` : 'retrying now';
    const full = `${this.#what}, ${text}`;
    if (line.textContent !== full) line.textContent = full;
    retryNow.disabled = left === 0;
    ring.style.setProperty('--left', this.#total > 0 ? left / this.#total : 0);
    if (left === 0) clearInterval(this.#timer);
  }
}
