// Markdown that is still being written: what is finished is rendered once, and only the open block again.
import { patch } from './patch.js';
import { lex, render } from './render.js';
import { lexOpen } from './unfinished.js';

/**
 * An open block of more characters is not read again for each delta, but each time it has grown by an eighth; until then
 * what comes is shown as it is. So the whole costs in proportion to its length, and not to the square of it.
 */
const LARGE = 6000;

/** The most characters that are taken in at once. */
const PIECE = 8000;

/** Blocks in which the end of the text may be. */
const CONTAINERS = new Set(['UL', 'OL', 'LI', 'P', 'BLOCKQUOTE', 'DIV', 'PRE']);

/** Renders into `root` what is pushed. `flush` brings the page up to date, `end` closes the last block. */
export class Markdown {
  #root;
  #fresh = ''; // came since the last flush
  #text = ''; // all before that
  #open = ''; // the end of it, which is not rendered for good
  #nodes = 0; // what is, as so many nodes
  #due = 0; // the length of the open block at which it is read again
  #loose = null; // the text node for what comes until then
  #hasLinks = false; // links are defined in one place and used in others

  constructor(root) {
    this.#root = root;
  }

  /** All that was pushed. */
  get source() {
    return this.#text + this.#fresh;
  }

  push(text) {
    this.#fresh += text.replaceAll('\r', '');
  }

  flush() {
    while (this.#fresh) {
      const piece = this.#fresh.slice(0, PIECE);
      this.#fresh = this.#fresh.slice(PIECE);
      this.#take(piece);
    }
  }

  end() {
    this.flush();
    if (this.#hasLinks) [this.#open, this.#nodes] = [this.#text, 0];
    this.#show(lex(this.#open));
  }

  #take(piece) {
    this.#text += piece;
    this.#open += piece;
    if (this.#open.length > LARGE && this.#open.length < this.#due) return this.#append(piece);
    this.#settle();
    this.#show(lexOpen(this.#open));
    this.#due = this.#open.length * 1.125;
  }

  /** Renders the blocks for good that another one follows. Whether one ends is known at the end of a line. */
  #settle() {
    const lines = this.#open.slice(0, this.#open.lastIndexOf('\n') + 1);
    if (lines === '') return;
    const tokens = lex(lines);
    this.#hasLinks ||= Object.keys(tokens.links).length > 0;
    const last = tokens.findLastIndex(({ type }) => type !== 'space');
    const settled = tokens.slice(0, Math.max(last, 0));
    const source = settled.map(({ raw }) => raw).join('');
    if (source === '' || !lines.startsWith(source)) return;
    this.#nodes = this.#show(settled);
    this.#open = this.#open.slice(source.length);
  }

  /** Shows these blocks after those that are rendered for good. How many nodes there are then. */
  #show(tokens) {
    this.#loose = null;
    patch(this.#root, this.#nodes, render(tokens));
    return this.#root.childNodes.length;
  }

  #append(text) {
    if (!this.#loose) {
      this.#loose = document.createTextNode('');
      endOf(this.#root).append(this.#loose);
    }
    this.#loose.appendData(text);
  }
}

function endOf(node) {
  const last = node.lastElementChild;
  return last && (CONTAINERS.has(last.nodeName) || node.nodeName === 'PRE') ? endOf(last) : node;
}
