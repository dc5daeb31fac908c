// Short messages in the corner.
import { byId, element } from './element.js';

const STAYS_MS = 9000;
const MOST = 4;

/** Shows a message that goes away by itself. */
export function toast(text) {
  const close = element('button', { type: 'button', className: 'quiet icon', ariaLabel: 'Dismiss' }, '×');
  const note = element('div', { className: 'toast' }, element('p', {}, text), close);
  close.addEventListener('click', () => note.remove());
  setTimeout(() => note.remove(), STAYS_MS);
  const toasts = byId('toasts');
  toasts.append(note);
  while (toasts.children.length > MOST) toasts.firstChild.remove();
}
