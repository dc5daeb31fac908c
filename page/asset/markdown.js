// Light Markdown for text that is still being written: only the open block is ever rendered again.
import { Code, Prose, Table, width } from './block.js';
import { element } from './element.js';

/** A beginning of a line that may still become a marker, a fence, a rule or a table row. */
const UNDECIDED =
  /^\s*(?:|[-*_+](?:[ \t]*[-*_])*[ \t]*|\d{1,9}(?:[.)][ \t]*)?|#{1,6}[ \t]*|`{1,2}|`{3,}[^`]*|~{1,2}|~{3,}.*|>|\|.*)$/;
const FENCE = /^(\s*)(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const RULE = /^\s*([-*_])(?:\s*\1){2,}\s*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const QUOTE = /^ {0,3}>\s?(.*)$/;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
const ROW = /^\s*\|(.*?)\|?\s*$/;
const DIVIDER = /^\s*\|?[\s:|-]*-[\s:|-]*$/;

/** A line whose kind is not decided after so many characters is text. */
const LONGEST_HEAD = 10_000;

/** Renders into `root` what is pushed. `flush` brings the page up to date, `end` closes the last block. */
export class Markdown {
  #root;
  #head = ''; // the beginning of the current line, as long as its kind is not decided
  #decided = false;
  #leaf = null; // the open block
  #lists = []; // the open lists, outermost first: { node, item, indent, ordered }
  #afterBlank = false;

  constructor(root) {
    this.#root = root;
  }

  push(text) {
    const lines = text.replaceAll('\r', '').split('\n');
    lines.forEach((part, index) => {
      if (index > 0) this.#newline();
      this.#add(part);
    });
  }

  flush() {
    this.#leaf?.flush();
  }

  end() {
    if (!this.#decided && this.#head) this.#begin(this.#head);
    this.#head = '';
    this.#decided = false;
    this.#close();
  }

  #add(part) {
    if (this.#decided) return this.#leaf.add(part);
    this.#head += part;
    if (this.#head.length > LONGEST_HEAD && !this.#leaf?.fence) this.#prose(0, 'p', this.#head);
    else if (this.#leaf?.fence ? this.#leaf.mayClose(this.#head) : UNDECIDED.test(this.#head)) return;
    else this.#begin(this.#head);
    this.#decided = true;
  }

  #newline() {
    if (!this.#decided) this.#begin(this.#head);
    this.#head = '';
    this.#decided = false;
  }

  /** A line begins with `line`; all of the line when its kind could not be decided before its end. */
  #begin(line) {
    if (this.#leaf?.fence) {
      if (this.#leaf.isClosedBy(line)) this.#close();
      else this.#leaf.line(line);
      return;
    }
    const blank = line.trim() === '';
    const afterBlank = this.#afterBlank;
    this.#afterBlank = blank;
    if (blank) return this.#close();
    let found;
    if ((found = FENCE.exec(line))) this.#open(new Code(this.#container(width(found[1])), found));
    else if (RULE.test(line)) this.#place(0, element('hr'));
    else if ((found = HEADING.exec(line))) this.#prose(0, `h${Math.min(found[1].length + 2, 6)}`, found[2]);
    else if ((found = ITEM.exec(line))) this.#item(width(found[1]), found[2], found[3]);
    else if ((found = QUOTE.exec(line))) this.#quote(found[1]);
    else if ((found = ROW.exec(line))) this.#row(found[1], DIVIDER.test(line));
    else if (this.#leaf?.continues && !afterBlank) this.#leaf.add(`\n${line.trimStart()}`);
    else this.#prose(width(/^\s*/.exec(line)[0]), 'p', line.trimStart());
  }

  #prose(indent, tag, text) {
    const node = element(tag);
    this.#place(indent, node);
    this.#leaf = new Prose(node, tag === 'p');
    this.#leaf.add(text);
  }

  #item(indent, number, text) {
    this.#close();
    while (this.#lists.length > 0 && indent < this.#lists.at(-1).indent) this.#lists.pop();
    const ordered = number !== undefined;
    let list = this.#lists.at(-1);
    if (list && indent < list.indent + 2 && list.ordered !== ordered) {
      this.#lists.pop();
      list = this.#lists.at(-1);
    }
    if (!list || indent >= list.indent + 2) {
      const node = element(ordered ? 'ol' : 'ul');
      if (ordered && number !== '1') node.start = Number(number);
      (list?.item ?? this.#root).append(node);
      list = { node, indent, ordered };
      this.#lists.push(list);
    }
    const paragraph = element('p');
    list.item = element('li', {}, paragraph);
    list.node.append(list.item);
    this.#leaf = new Prose(paragraph, true);
    this.#leaf.add(text);
  }

  #quote(text) {
    if (this.#leaf?.quoted) return this.#leaf.add(`\n${text}`);
    const paragraph = element('p');
    this.#place(0, element('blockquote', {}, paragraph));
    this.#leaf = new Prose(paragraph, true);
    this.#leaf.quoted = true;
    this.#leaf.add(text);
  }

  #row(cells, isDivider) {
    if (!this.#leaf?.rows) this.#open(new Table(this.#container(0)));
    if (isDivider) this.#leaf.divide();
    else this.#leaf.row(cells);
  }

  #place(indent, node) {
    this.#close();
    this.#container(indent).append(node);
  }

  #open(leaf) {
    this.#close();
    this.#leaf = leaf;
  }

  /** Where a block of this indent goes: into the list item that it is indented under, else to the top. */
  #container(indent) {
    while (this.#lists.length > 0 && indent < this.#lists.at(-1).indent + 2) this.#lists.pop();
    return this.#lists.at(-1)?.item ?? this.#root;
  }

  #close() {
    this.#leaf?.end();
    this.#leaf = null;
  }
}
