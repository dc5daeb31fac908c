// Extensions for marked that keep maths as typed, because Markdown would interpret its backslashes, stars and
// underscores. It is typeset later.

/** From `$$`, `\[` or `\begin{…}` at the start of a line to the matching end, at most up to the next blank line. */
const BLOCK = /^ {0,3}(?:\$\$|\\\[|\\begin\{[a-z]+\*?\})(?:(?!\n[ \t]*(?:\n|$))[^])*/;
const BLOCK_START = /(?<=\n {0,3})(?:\$\$|\\\[|\\begin\{)/;

/** `$x$` as in TeX. `$5 and $6` are prices. */
const INLINE = /^(?:\$\$[^]+?\$\$|\\\([^]+?\\\)|\\\[[^]+?\\\]|\$(?![\s\d.,]*\s)(?:\\[^]|[^$\\\n])+?(?<!\s)\$(?!\w))/;
const INLINE_START = /\$|\\[([]/;

const token = (type, pattern, start) => ({
  name: type,
  level: type === 'mathBlock' ? 'block' : 'inline',
  start: (text) => {
    const at = text.search(start);
    return at < 0 ? undefined : at;
  },
  tokenizer: (text) => {
    const raw = pattern.exec(text)?.[0];
    return raw && { type, raw, text: raw };
  },
});

/** `verbatim(text)`: the text as HTML. */
export const maths = (verbatim) => [
  { ...token('mathBlock', BLOCK, BLOCK_START), renderer: ({ text }) => `<p class="math">${verbatim(text.trim())}</p>\n` },
  { ...token('math', INLINE, INLINE_START), renderer: ({ text }) => `<span class="math">${verbatim(text)}</span>` },
];
