// Renders Markdown: marked parses it, DOMPurify sanitizes the result. Anything else is shown as text.
import { clean } from './clean.js';
import { dress } from './code.js';
import { maths } from './maths.js';
import { typeset } from './typeset.js';
import { Marked } from './vendor/marked/marked.esm.js';

/** Harmless HTML elements that models use where Markdown has no equivalent. */
const HARMLESS = /^(?:<br ?\/?>|<\/?(?:sub|sup|kbd|mark|ins|u|s)>)$/i;
const LINK = /^(?:https?:\/\/|mailto:)/i;
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,/i;

const NAMES = { '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;', '&': '&amp;' };
/** The text as HTML, literally. */
const verbatim = (text) => text.replace(/[<>"'&]/g, (character) => NAMES[character]);
/** The text as HTML, with its entities interpreted. */
const escaped = (text) => text.replace(/[<>"']|&(?!(?:#\d{1,7}|#x[\da-f]{1,6}|\w+);)/gi, (character) => NAMES[character]);

const renderer = {
  heading({ tokens, depth }) {
    const tag = `h${Math.min(depth + 1, 6)}`; // below the title of the page
    return `<${tag}>${this.parser.parseInline(tokens)}</${tag}>\n`;
  },
  code({ text, lang }) {
    const [language] = (lang ?? '').trim().split(/\s/, 1);
    return `<pre><code${language ? ` data-language="${verbatim(language)}"` : ''}>${verbatim(text)}</code></pre>\n`;
  },
  html({ text, block }) {
    if (block) return `<p>${verbatim(text.trim())}</p>\n`;
    return HARMLESS.test(text) ? text : verbatim(text);
  },
  tablecell({ tokens, header, align }) {
    const tag = header ? 'th' : 'td';
    const attributes = (header ? ' scope="col"' : '') + (align ? ` align="${align}"` : '');
    return `<${tag}${attributes}>${this.parser.parseInline(tokens)}</${tag}>`;
  },
  checkbox({ checked }) {
    return `<input type="checkbox" disabled aria-label="${checked ? 'Done' : 'To do'}"${checked ? ' checked' : ''}> `;
  },
  link({ href, tokens, text, raw, autolink }) {
    if (!LINK.test(href)) return verbatim(raw);
    const hasPicture = tokens?.some(({ type }) => type === 'image');
    const inside = () => (hasPicture ? escaped(text.replace(/^!\[|\]\([^]*$/g, '')) : this.parser.parseInline(tokens));
    return autolink ? anchor(verbatim(href), verbatim(text)) : anchor(escaped(href), inside());
  },
  /** Remote images are not fetched; they become links. */
  image({ href, text, raw }) {
    if (PICTURE.test(href)) return `<img src="${escaped(href)}" alt="${escaped(text)}">`;
    return LINK.test(href) ? anchor(escaped(href), escaped(text || href)) : verbatim(raw);
  },
  text(token) {
    return token.tokens ? this.parser.parseInline(token.tokens) : escaped(token.text);
  },
};

/** A link; both arguments are HTML. */
function anchor(href, html) {
  return `<a href="${href}" target="_blank" rel="noopener noreferrer">${html}</a>`;
}

const marked = new Marked({ gfm: true, breaks: true, renderer, extensions: maths(verbatim) });

/** The blocks of a text, as parsed by marked. */
export const lex = (text) => marked.lexer(text);

/** Renders blocks to a fragment. */
export function render(tokens) {
  const fragment = clean(marked.parser(tokens));
  for (const node of [...fragment.childNodes]) if (node.data?.trim() === '') node.remove(); // between blocks
  dress(fragment);
  typeset(fragment);
  return fragment;
}
