// The frame of code and tables in an answer: language, copy button, scrolling.
import { copy } from './copy.js';
import { element } from './element.js';
import { highlight } from './syntax.js';

/** Adds frames in a fragment. */
export function dress(fragment) {
  for (const pre of fragment.querySelectorAll('pre')) frame(pre);
  for (const table of fragment.querySelectorAll('table')) {
    const place = element('div', { className: 'table', tabIndex: 0 });
    table.replaceWith(place);
    place.append(table);
  }
}

function frame(pre) {
  const code = pre.firstElementChild;
  const button = element('button', { type: 'button', className: 'copy quiet' }, 'Copy');
  const label = element('div', { className: 'code-label' }, code.dataset.language ?? '', button);
  const block = element('div', { className: 'code' }, label);
  pre.replaceWith(block);
  pre.tabIndex = 0;
  block.append(pre);
  highlight(code);
}

// A single listener, because nodes come and go while an answer streams.
document.addEventListener('click', async ({ target }) => {
  const button = target.closest('.code .copy');
  if (!button) return;
  const text = button.closest('.code').querySelector('code').textContent.replace(/\n$/, '');
  button.textContent = (await copy(text)) ? 'Copied' : 'Not allowed';
  setTimeout(() => (button.textContent = 'Copy'), 1500);
});
