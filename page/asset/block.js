// The blocks of Markdown that can be open: prose, code, table. Each takes text and brings itself up to date.
import { copy } from './copy.js';
import { element } from './element.js';
import { MARKUP, inline } from './inline.js';

/** Above this many characters an open block is no longer rendered again for each delta, only when it ends. */
const LARGE = 20_000;

/** The width of an indent, in columns. */
export const width = (indent) => indent.replaceAll('\t', '    ').length;

/** A paragraph, heading or list item. */
export class Prose {
  #node;
  #text = '';
  #shown = 0;
  #tail = null; // the text node that plain text may be appended to

  constructor(node, continues) {
    this.#node = node;
    this.continues = continues;
  }

  add(text) {
    this.#text += text;
  }

  flush() {
    if (this.#shown === this.#text.length) return;
    const fresh = this.#text.slice(this.#shown);
    if (this.#text.length > LARGE) this.#node.append((this.#tail ??= document.createTextNode('')));
    if (this.#tail && (this.#text.length > LARGE || !MARKUP.test(fresh))) this.#tail.appendData(fresh);
    else this.#render(true);
    this.#shown = this.#text.length;
  }

  end() {
    if (MARKUP.test(this.#text)) this.#render(false);
    else this.flush();
  }

  #render(open) {
    this.#node.replaceChildren(inline(this.#text, open));
    let last = this.#node.lastChild;
    while (last?.lastChild && last.nodeName !== 'A') last = last.lastChild;
    // A mark at the very end is read by what follows it.
    const plain = last?.nodeType === Node.TEXT_NODE && !MARKUP.test(this.#text.at(-1) ?? '');
    this.#tail = plain ? last : null;
  }
}

/** A fenced code block. Its text only grows. */
export class Code {
  fence;
  #text = document.createTextNode('');
  #fresh = '';
  #indent;
  #empty = true;

  constructor(container, [, indent, fence, language]) {
    this.fence = fence;
    this.#indent = width(indent);
    const code = element('code', {}, this.#text);
    if (language) code.dataset.language = language;
    const button = element('button', { type: 'button', className: 'copy quiet', textContent: 'Copy' });
    button.addEventListener('click', () => this.#copy(button));
    const label = element('div', { className: 'code-label' }, language, button);
    container.append(element('div', { className: 'code' }, label, element('pre', { tabIndex: 0 }, code)));
  }

  mayClose(head) {
    const mark = head.trim();
    return mark === this.fence[0].repeat(mark.length);
  }

  isClosedBy(line) {
    return this.mayClose(line) && line.trim().length >= this.fence.length;
  }

  line(text) {
    let skip = 0;
    while (skip < this.#indent && text[skip] === ' ') skip += 1;
    this.add(`${this.#empty ? '' : '\n'}${text.slice(skip)}`);
    this.#empty = false;
  }

  add(text) {
    this.#fresh += text;
  }

  flush() {
    if (this.#fresh) this.#text.appendData(this.#fresh);
    this.#fresh = '';
  }

  end() {
    this.flush();
  }

  async #copy(button) {
    button.textContent = (await copy(this.#text.data)) ? 'Copied' : 'Not allowed';
    setTimeout(() => (button.textContent = 'Copy'), 1500);
  }
}

/** A table; a row is shown when its line is complete. */
export class Table {
  rows = element('tbody');

  constructor(container) {
    container.append(element('div', { className: 'table', tabIndex: 0 }, element('table', {}, this.rows)));
  }

  row(cells, tag = 'td') {
    const parts = cells.split(/(?<!\\)\|/);
    this.rows.append(element('tr', {}, ...parts.map((cell) => element(tag, {}, inline(cell.trim())))));
  }

  /** The line under the header. */
  divide() {
    const [header] = this.rows.rows;
    if (this.rows.rows.length !== 1) return;
    for (const cell of [...header.cells]) cell.replaceWith(element('th', { scope: 'col' }, ...cell.childNodes));
  }

  add() {}
  flush() {}
  end() {}
}
