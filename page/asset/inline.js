// Inline Markdown: code, bold, italics, links. One pass over the text, built from nodes.
import { element } from './element.js';

/** A delta without any of these cannot change how the text before it is read. */
export const MARKUP = /[`*_[\]()\\:]/;

const TOKEN = /`+|\*\*|__|[*_[]|\\[!-/:-@[-`{-~]|https?:\/\/[^\s<>()[\]`*"']+/g;
const LINK = /\[([^[\]\n]+)\]\(((?:https?:\/\/|mailto:)[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)\)/y;
const TAGS = { '**': 'strong', __: 'strong', '*': 'em', _: 'em' };

/** The text as nodes. While `open`, more may follow, and what has been opened is shown as if it were closed. */
export function inline(text, open = false) {
  const fragment = document.createDocumentFragment();
  const stack = []; // of { mark, node }: what has been opened, outermost first
  const unclosed = new Set(); // lengths of backtick runs that have no partner further on
  const into = () => stack.at(-1)?.node ?? fragment;
  let at = 0;

  TOKEN.lastIndex = 0;
  for (let token; (token = TOKEN.exec(text)); ) {
    const [mark] = token;
    const start = token.index;
    let end = start + mark.length;
    let node = null;
    if (mark[0] === '`') {
      const close = unclosed.has(mark.length) ? -1 : closing(text, mark, end);
      if (close < 0 && !open) unclosed.add(mark.length);
      else {
        node = element('code', {}, text.slice(end, close < 0 ? text.length : close));
        end = close < 0 ? text.length : close + mark.length;
      }
    } else if (mark[0] === '\\') {
      node = mark[1];
    } else if (mark === '[') {
      LINK.lastIndex = start;
      const link = LINK.exec(text);
      if (link) {
        node = anchor(link[2], link[1]);
        end = LINK.lastIndex;
      }
    } else if (mark.startsWith('http')) {
      const url = mark.replace(/[.,;:!?]+$/, '');
      node = anchor(url, url);
      end = start + url.length;
    } else {
      const opened = stack.findLastIndex((each) => each.mark === mark);
      if (opened >= 0 && closes(text, start, end, mark)) {
        into().append(text.slice(at, start));
        stack.splice(opened + 1).reverse().forEach(unwrap);
        stack.pop();
        at = end;
      } else if (opened < 0 && opens(text, start, end, mark)) {
        into().append(text.slice(at, start));
        const made = element(TAGS[mark]);
        into().append(made);
        stack.push({ mark, node: made });
        at = end;
      }
      continue;
    }
    if (node === null) continue;
    into().append(text.slice(at, start), node);
    at = end;
    TOKEN.lastIndex = end;
  }
  into().append(text.slice(at));
  if (!open) stack.reverse().forEach(unwrap);
  return fragment;
}

/** Where a run of exactly these backticks begins, or -1. */
function closing(text, mark, from) {
  for (let at = from; (at = text.indexOf(mark, at)) >= 0; ) {
    let end = at + mark.length;
    if (text[end] !== '`') return at;
    while (text[end] === '`') end += 1;
    at = end;
  }
  return -1;
}

const isWord = (char) => char !== undefined && /[\p{L}\p{N}]/u.test(char);
const isSpace = (char) => char === undefined || /\s/.test(char);

function opens(text, start, end, mark) {
  return !isSpace(text[end]) && !(mark[0] === '_' && isWord(text[start - 1]));
}

function closes(text, start, end, mark) {
  return !isSpace(text[start - 1]) && !(mark[0] === '_' && isWord(text[end]));
}

/** Nothing closed it: it was a plain mark. */
function unwrap({ mark, node }) {
  node.replaceWith(mark, ...node.childNodes);
}

function anchor(href, label) {
  return element('a', { href, target: '_blank', rel: 'noopener noreferrer' }, label);
}
