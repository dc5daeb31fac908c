// Highlights code with highlight.js. A grammar is fetched when code in its language is first shown.
import { clean } from './clean.js';
import hljs from './vendor/highlight/core.min.js';

/** The grammars, each with other names that models use. */
const GRAMMARS = {
  bash: 'sh zsh',
  c: 'h',
  cpp: 'c++ cc hpp cxx',
  csharp: 'cs c#',
  css: 'scss less',
  diff: 'patch',
  dockerfile: 'docker',
  go: 'golang',
  graphql: 'gql',
  ini: 'toml conf',
  java: '',
  javascript: 'js jsx mjs cjs',
  json: 'jsonc json5 jsonl',
  kotlin: 'kt kts',
  lua: '',
  makefile: 'make mk',
  markdown: 'md mdx',
  php: '',
  powershell: 'ps1 pwsh ps',
  python: 'py py3 pyi',
  r: '',
  ruby: 'rb',
  rust: 'rs',
  scala: '',
  shell: 'console shellsession',
  sql: 'postgresql mysql sqlite',
  swift: '',
  typescript: 'ts tsx mts',
  xml: 'html svg xhtml vue svelte',
  yaml: 'yml',
};

const NAMES = new Map(
  Object.entries(GRAMMARS).flatMap(([name, others]) => [name, ...others.split(' ')].filter(Boolean).map((other) => [other, name])),
);

/** Further grammars used by a grammar. */
const INSIDE = { xml: ['css', 'javascript'], markdown: ['xml'], shell: ['bash'], php: ['xml'] };

/** Longer code is not highlighted, in characters. */
const LONGEST = 60_000;

const fetched = new Map(); // by name: the fetching of a grammar

/** Highlights a code element, now or as soon as its grammar is loaded. */
export function highlight(code) {
  const grammar = grammarOf(code);
  if (grammar === undefined) return;
  if (hljs.getLanguage(grammar)) paint(code, grammar);
  else need(grammar).then(() => repaint(grammar), () => {});
}

const grammarOf = (code) => NAMES.get(code.dataset.language?.toLowerCase());

function need(name) {
  if (!fetched.has(name)) fetched.set(name, load(name));
  return fetched.get(name);
}

async function load(name) {
  await Promise.all((INSIDE[name] ?? []).map((other) => (hljs.getLanguage(other) ? null : need(other))));
  const { default: grammar } = await import(`./vendor/highlight/${name}.min.js`);
  hljs.registerLanguage(name, grammar);
}

/** Highlights all shown code in that language, because the requesting element may have been replaced. */
function repaint(grammar) {
  for (const code of document.querySelectorAll('.code code[data-language]')) if (grammarOf(code) === grammar) paint(code, grammar);
}

function paint(code, language) {
  const text = code.textContent;
  if (text.length > LONGEST) return;
  code.replaceChildren(clean(hljs.highlight(text, { language, ignoreIllegals: true }).value));
}
