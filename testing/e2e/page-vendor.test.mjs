// The page's vendored libraries equal those of package-lock.json, byte for byte.
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FILES, VENDOR, original } from './vendor.mjs';

test('each library of the page is the one that package-lock.json pins', async () => {
  const there = await readdir(VENDOR, { recursive: true, withFileTypes: true });
  const files = there.filter((each) => each.isFile()).map(({ parentPath, name }) => `${relative(fileURLToPath(VENDOR), parentPath)}/${name}`);
  assert.deepEqual(files.sort(), Object.keys(FILES).sort());
  for (const file of files) {
    const [copy, pinned] = await Promise.all([readFile(new URL(file, VENDOR)), readFile(original(file))]);
    assert.ok(copy.equals(pinned), `${file} differs from its package: run node vendor.mjs`);
  }
  const { packages } = JSON.parse(await readFile(new URL('package-lock.json', import.meta.url), 'utf8'));
  for (const name of ['marked', 'dompurify', 'katex', '@highlightjs/cdn-assets']) {
    const { version } = JSON.parse(await readFile(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8'));
    assert.equal(version, packages[`node_modules/${name}`].version, `${name}: run npm ci`);
  }
});
