// Makes invisible characters in text of models and tools visible.

/** Control characters except line breaks and tabs, invisible characters, and bidirectional controls. */
const HIDDEN = new RegExp(
  [
    '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f',
    '\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]',
  ].join(''),
  'gu',
);

/** The text with hidden characters written out, like `<U+202E>`. */
export function visible(text) {
  return text.replaceAll('\r\n', '\n').replace(HIDDEN, (hidden, at, whole) => {
    if (isJoiner(hidden) && mayBeJoined(whole, at)) return hidden;
    return `<U+${hidden.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}>`;
  });
}

/** Joins letters of some scripts and parts of an emoji; elsewhere it only hides differences. */
const isJoiner = (character) => character === '\u200c' || character === '\u200d';

/** Whether a joiner is legitimate after the character before `at`. */
function mayBeJoined(text, at) {
  const before = /[^]$/u.exec(text.slice(Math.max(0, at - 2), at))?.[0] ?? '';
  return before > '\x7f' && before.search(HIDDEN) < 0;
}

/** On one line, truncated to `longest` characters. */
export function oneLine(text, longest) {
  const line = visible(text.slice(0, longest * 2)).replace(/\s+/g, ' ').trim();
  return line.length > longest ? `${line.slice(0, longest)}…` : line;
}
