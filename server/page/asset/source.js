// Copies messages in their original Markdown.
import { copy } from './copy.js';
import { element } from './element.js';

const sources = new WeakMap(); // by node: `() => text`

/** `source()` returns the Markdown that the node shows. */
export function hasSource(node, source) {
  sources.set(node, source);
}

/** A button that copies the result of `text(button)`. */
export function copyOffer(text) {
  const button = element('button', { type: 'button', className: 'quiet small' }, 'Copy');
  button.addEventListener('click', async () => {
    button.textContent = (await copy(text(button))) ? 'Copied' : 'Not allowed';
    setTimeout(() => (button.textContent = 'Copy'), 1500);
  });
  return button;
}

/** The answers in a turn. */
export function answersIn(turn) {
  const answers = [...turn.querySelectorAll('.answer')].filter((node) => !node.closest('.replaced'));
  return answers.map((node) => sources.get(node)?.().trim()).filter(Boolean).join('\n\n');
}
