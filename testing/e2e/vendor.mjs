#!/usr/bin/env node
// Copies the libraries of the page out of their npm packages, at the versions in package-lock.json, to server/page/asset/vendor:
// `npm ci && node vendor.mjs`. To update one, change its version in package.json first.
import { copyFile, mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGES = new URL('node_modules/', import.meta.url);
export const VENDOR = new URL('../../server/page/asset/vendor/', import.meta.url);

/** The languages of highlighted code, as listed in server/page/asset/syntax.js. */
const LANGUAGES = (
  'bash c cpp csharp css diff dockerfile go graphql ini java javascript json kotlin lua makefile markdown php powershell ' +
  'python r ruby rust scala shell sql swift typescript xml yaml'
).split(' ');

/** The fonts of formulas. */
const FONTS = (
  'AMS-Regular Caligraphic-Bold Caligraphic-Regular Fraktur-Bold Fraktur-Regular Main-Bold Main-BoldItalic Main-Italic Main-Regular Math-BoldItalic Math-Italic ' +
  'SansSerif-Bold SansSerif-Italic SansSerif-Regular Script-Regular Size1-Regular Size2-Regular Size3-Regular Size4-Regular Typewriter-Regular'
).split(' ');

/** A file of the page, and the package file that it is a copy of. */
export const FILES = Object.fromEntries([
  ['marked/marked.esm.js', 'marked/lib/marked.esm.js'],
  ['marked/LICENSE.txt', 'marked/LICENSE'],
  ['dompurify/purify.es.mjs', 'dompurify/dist/purify.es.mjs'],
  ['dompurify/LICENSE.txt', 'dompurify/LICENSE'],
  ['highlight/core.min.js', '@highlightjs/cdn-assets/es/core.min.js'],
  ['highlight/LICENSE.txt', '@highlightjs/cdn-assets/LICENSE'],
  ['katex/katex.min.js', 'katex/dist/katex.min.js'],
  ['katex/katex.min.css', 'katex/dist/katex.min.css'],
  ['katex/LICENSE.txt', 'katex/LICENSE'],
  ...FONTS.map((name) => [`katex/fonts/KaTeX_${name}.woff2`, `katex/dist/fonts/KaTeX_${name}.woff2`]),
  ...LANGUAGES.map((name) => [`highlight/${name}.min.js`, `@highlightjs/cdn-assets/es/languages/${name}.min.js`]),
]);

export const original = (file) => new URL(FILES[file], PACKAGES);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await rm(VENDOR, { recursive: true, force: true });
  for (const file of Object.keys(FILES)) {
    const copy = new URL(file, VENDOR);
    await mkdir(dirname(fileURLToPath(copy)), { recursive: true });
    await copyFile(original(file), copy);
  }
  console.log(`copied ${Object.keys(FILES).length} files`);
}
