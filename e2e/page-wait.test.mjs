// Long waits, waits that others learnt of, and answers that break off, on the page: against the server itself and a provider
// on loopback.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { startServer } from './support/binary.mjs';
import { launch, openPage, send } from './support/browser.mjs';
import { startProvider } from './support/provider.mjs';

const config = (url) => `
[retry]
schedule = "exponential"
base_ms = 300
jitter = 0.0
quota = "park"

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]
`;

let browser;
let directory;
let provider;
let server;
let page;

before(async () => {
  browser = await launch();
});
after(() => browser?.close());
beforeEach(async () => {
  provider = await startProvider();
  directory = await mkdtemp(join(tmpdir(), 'everturn-'));
  await writeFile(join(directory, 'config.toml'), config(provider.url));
  server = await startServer(['--config', join(directory, 'config.toml')]);
  page = await openPage(browser, server.url);
  await page.waitForFunction(() => document.querySelectorAll('#model option').length === 1);
});
afterEach(async () => {
  await page?.context().close();
  await server?.stop();
  await provider?.stop();
  await rm(directory, { recursive: true, force: true });
});

const settled = (on = page) =>
  on.waitForFunction(() => document.querySelector('.settled .turn') && !document.querySelector('.turn[aria-busy=true]'));
const answers = (on = page) => on.locator('.answer').allTextContents();
const line = () => page.locator('#wait-line').textContent();
const usedUp = (seconds) => ({
  status: 429,
  headers: { 'retry-after': String(seconds) },
  body: { error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'You exceeded your current quota' } },
});
const limited = (seconds) => ({
  status: 429,
  headers: { 'retry-after': String(seconds) },
  body: { error: { type: 'rate_limit_error', message: 'Slow down' } },
});

test('an answer that breaks off is taken back and written again', async () => {
  const seen = await page.evaluateHandle(() => {
    const texts = new Set();
    new MutationObserver(() => {
      for (const node of document.querySelectorAll('.answer')) texts.add(node.textContent.trim());
    }).observe(document.querySelector('#transcript'), { childList: true, subtree: true, characterData: true });
    return texts;
  });
  provider.says({ breaks: 'Half an ans' }, 'A whole answer.');
  await send(page, 'Tell me');
  await page.waitForFunction(() => document.querySelector('#transcript').innerText.includes('A whole answer.'));
  await settled();
  assert.deepEqual((await answers()).map((text) => text.trim()), ['A whole answer.']);
  const texts = await page.evaluate((set) => [...set], seen);
  assert.ok(texts.includes('Half an ans'), `it was shown first: ${texts}`);
  await page.reload();
  await settled();
  assert.deepEqual((await answers()).map((text) => text.trim()), ['A whole answer.']);
  assert.equal(provider.requests.length, 2);
});

test('a usage limit is told by when it ends, and a person need not wait for it', async () => {
  provider.says(usedUp(2 * 24 * 3600), 'Here again.');
  await send(page, 'Tell me');
  await page.waitForFunction(() => /^Usage limit reached, continues \w/.test(document.querySelector('#wait-line').textContent));
  assert.match(await line(), /^Usage limit reached, continues \w{3},? \d{1,2}:\d{2}/);
  await page.locator('#retry-now').click();
  await page.waitForFunction(() => document.querySelector('#transcript').innerText.includes('Here again.'));
});

test('a turn that waits because of another one says so', async () => {
  provider.says(limited(60));
  await send(page, 'First');
  await page.waitForFunction(() => document.querySelector('#wait-line').textContent.startsWith('Rate limited'));
  const other = await openPage(browser, server.url);
  await send(other, 'Second');
  await other.waitForFunction(() => document.querySelector('#wait-note').textContent.includes('another turn was refused'));
  assert.equal(provider.requests.length, 1, 'the second turn did not ask');
  provider.says('Now it works.');
  await other.locator('#retry-now').click();
  await other.waitForFunction(() => document.querySelector('#transcript').innerText.includes('Now it works.'));
  await other.context().close();
});
