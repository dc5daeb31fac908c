// Makes unfinished Markdown look right: closes open constructs, and holds back text that the next character may turn
// into something else.
import { lex } from './render.js';

/** The start of a line that may become a marker, a fence, a rule, a heading underline or a table row. */
const UNDECIDED =
  /^[ \t>]*(?:|[-*_+=](?:[ \t]*[-*_=])*[ \t]*|\d{1,9}(?:[.)][ \t]*)?|#{1,6}[ \t]*|`{1,2}|`{3,}[^`]*|~{1,2}|~{3,}.*|\|.*)$/;
/** In code, the start of its closing fence. */
const FENCE = /^[ \t]*(?:`+|~+)$/;
/** The first lines of a possible table. */
const TABLE_HEAD = /(?:^|\n)[ \t]*\|[^\n]*\n?$/;
/** A complete code span. */
const SPAN = /(?<!`)(`+)(?!`)[^]*?[^`]\1(?!`)/g;

/** The blocks of `text`, the last of which is open. */
export function lexOpen(text) {
  const tokens = lex(text);
  const leaf = lastLeaf(tokens);
  const shown = leaf?.type === 'code' ? withoutLine(text, FENCE) : ready(text, leaf);
  return shown === text ? tokens : lex(shown);
}

function ready(text, leaf) {
  const held = withoutLine(text, UNDECIDED);
  if (held !== text) return lastLeaf(lex(held))?.type === 'table' ? held : withoutTableHead(held);
  if (leaf?.type === 'table') return text;
  const decided = withoutTableHead(text.replace(/[*_`~]+$/, ''));
  return decided + closers(decided.slice(-leafLength(leaf)));
}

function withoutLine(text, pattern) {
  const start = text.lastIndexOf('\n') + 1;
  return pattern.test(text.slice(start)) ? text.slice(0, start) : text;
}

const withoutTableHead = (text) => text.replace(TABLE_HEAD, '');

/** The innermost block at the end. */
function lastLeaf(tokens) {
  const last = tokens.findLast(({ type }) => type !== 'space');
  const inside = last?.items ? last.items.at(-1).tokens : ['blockquote', 'list_item'].includes(last?.type) ? last.tokens : null;
  return inside?.length ? lastLeaf(inside) : last;
}

const leafLength = (leaf) => (leaf?.raw ? leaf.raw.length : 0) || Infinity;

/** The marks opened but not closed in a paragraph, in reverse order. */
function closers(text) {
  const rest = text.replace(SPAN, '');
  const code = /(?<!`)(`+)[^`]+$/.exec(rest);
  const before = code ? rest.slice(0, code.index) : rest;
  const open = ['**', '~~'].filter((mark) => {
    const parts = before.split(mark);
    return parts.length % 2 === 0 && (code || /^\S/.test(parts.at(-1)));
  });
  return (code?.[1] ?? '') + open.reverse().join('');
}
