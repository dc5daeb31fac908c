// The scrolling column of messages. It stays at the end unless the reader scrolled up.
import { byId, element } from './element.js';

const scroll = byId('scroll');
const column = byId('transcript');
const latest = byId('latest');

/** Distance from the end that still counts as the end, in pixels. */
const NEAR = 48;

/** Space above a question, in pixels. */
const GAP = 12;

let sticks = true;

scroll.addEventListener(
  'scroll',
  () => {
    sticks = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR;
    latest.hidden = sticks;
  },
  { passive: true },
);
latest.addEventListener('click', toEnd);
// The dock below grows and shrinks with the banner and the field.
new ResizeObserver(settle).observe(scroll);

/** Clears the transcript, and follows new content. */
export function clear() {
  column.replaceChildren();
  toEnd();
}

/** Replaces everything shown. */
export function show(...nodes) {
  column.replaceChildren(...nodes);
  settle();
}

export function append(node) {
  column.append(node);
}

/** A line in place of a conversation, with an action. */
export function notice(text, ...offers) {
  return element('div', { className: 'notice' }, element('p', { className: 'note', role: 'alert' }, text), ...offers);
}

/** A link to a new conversation. */
export const newLink = () => element('a', { className: 'button', href: '#/' }, 'New conversation');

/** Call after the content changed. */
export function settle() {
  if (sticks) showEnd();
  else latest.hidden = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR;
}

export function toEnd() {
  sticks = true;
  latest.hidden = true;
  showEnd();
}

/** Shows the end, but the start of a question that is longer than the page: it must be read first. */
function showEnd() {
  const asked = column.querySelector('.question:not(:focus-within)');
  const above = asked && asked.getBoundingClientRect().top - scroll.getBoundingClientRect().top - GAP;
  scroll.scrollTop = Math.min(scroll.scrollHeight, asked ? scroll.scrollTop + above : Infinity);
}

/** Runs `change`, which adds content above the visible part, without moving the visible part. */
export function above(change) {
  const fromEnd = scroll.scrollHeight - scroll.scrollTop;
  change();
  scroll.scrollTop = scroll.scrollHeight - fromEnd;
}

/** The button that loads older messages. `load` resolves to whether there are more. */
export function olderButton(load) {
  const button = element('button', { type: 'button', className: 'button quiet older' }, 'Load older messages');
  button.addEventListener('click', async () => {
    button.disabled = true;
    const more = await load();
    button.disabled = false;
    if (!more) button.remove();
  });
  return button;
}
