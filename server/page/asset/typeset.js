// Typesets formulas with KaTeX, which is fetched when a formula is first shown. What it does not understand stays as typed.
import { element } from './element.js';

/** Longer formulas stay as typed, in characters; and the most parts of the result, as macros can multiply. */
const LONGEST = 4000;
const MOST_NODES = 5000;

/** Opening and closing marks around a formula. */
const MARKS = [/^\$\$([^]+)\$\$$/, /^\\\[([^]+)\\\]$/, /^\\\(([^]+)\\\)$/, /^\$([^]+)\$$/];

const OPTIONS = { throwOnError: true, strict: 'ignore', trust: false, maxSize: 20, maxExpand: 200, output: 'htmlAndMathml' };

let loading = null; // the fetching of the library

/** Typesets the formulas in a fragment, now or as soon as the library is loaded. */
export function typeset(fragment) {
  const formulas = fragment.querySelectorAll('.math');
  if (formulas.length === 0) return;
  if (globalThis.katex) formulas.forEach(show);
  else load().then(() => document.querySelectorAll('.math').forEach(show), () => {});
}

function load() {
  loading ??= fetchLibrary().catch((error) => {
    loading = null; // the next formula tries again
    throw error;
  });
  return loading;
}

async function fetchLibrary() {
  const href = new URL('vendor/katex/katex.min.css', import.meta.url).href;
  if (!document.querySelector(`link[href="${href}"]`)) document.head.append(element('link', { rel: 'stylesheet', href }));
  await import('./vendor/katex/katex.min.js');
}

function show(node) {
  if (node.firstElementChild) return; // it is typeset
  const typed = node.textContent;
  const tex = inside(typed.trim());
  if (tex === null || typed.length > LONGEST) return;
  const made = element('span', { className: 'formula' });
  try {
    globalThis.katex.render(tex, made, { ...OPTIONS, displayMode: node.nodeName === 'P' || /^(?:\$\$|\\\[)/.test(typed) });
  } catch {
    return; // incomplete, or not TeX
  }
  if (made.querySelectorAll('*').length > MOST_NODES) return;
  if (node.nodeName === 'P') made.tabIndex = 0; // it scrolls if it is wide
  node.replaceChildren(made);
}

/** The formula without its marks; an environment has none. Null if there is no end yet. */
function inside(text) {
  for (const marks of MARKS) {
    const tex = marks.exec(text)?.[1];
    if (tex !== undefined) return tex;
  }
  return /^\\begin\{([a-z]+\*?)\}[^]*\\end\{\1\}$/.test(text) ? text : null;
}
