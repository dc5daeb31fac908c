// Renders Markdown while it streams: finished blocks once, and only the open block again.
import { patch } from './patch.js';
import { lex, render } from './render.js';
import { lexOpen } from './unfinished.js';

/**
 * A longer open block, in characters, is parsed again only after it has grown by an eighth; until then, new text is
 * shown as is. So the total cost is linear in the length, not quadratic.
 */
const LARGE = 6000;

/** Maximum number of characters handled at once. */
const PIECE = 8000;

/** Blocks that may contain the end of the text. */
const CONTAINERS = new Set(['UL', 'OL', 'LI', 'P', 'BLOCKQUOTE', 'DIV', 'PRE']);

/** Renders pushed text into `root`. `flush` updates the page, `end` closes the last block. */
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

  /** All pushed text. */
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

  /** Renders finished blocks permanently. Whether a block is finished is known only at the end of a line. */
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

  /** Shows these blocks after the permanent ones. Returns the resulting number of nodes. */
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
