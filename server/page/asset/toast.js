// Short messages in the corner.
import { byId, element } from './element.js';

const STAYS_MS = 9000;
const MOST = 4;

/** Shows a message that disappears by itself, or when its cause is gone. */
export function toast(text, cause) {
  const close = element('button', { type: 'button', className: 'quiet icon', ariaLabel: 'Dismiss' }, '×');
  const note = element('div', { className: 'toast' }, element('p', {}, text), close);
  note.dataset.cause = cause;
  close.addEventListener('click', () => note.remove());
  setTimeout(() => note.remove(), STAYS_MS);
  const toasts = byId('toasts');
  for (const other of [...toasts.children]) if (other.firstChild.textContent === text) other.remove();
  toasts.append(note);
  while (toasts.children.length > MOST) toasts.firstChild.remove();
}

/** Removes the messages with these causes. */
export function dismiss(...causes) {
  for (const note of [...byId('toasts').children]) if (causes.includes(note.dataset.cause)) note.remove();
}
