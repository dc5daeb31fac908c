// Long waits, waits caused by other turns, and truncated answers, on the page, with the real server and a provider on
// loopback.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { openPage, send } from './support/browser.mjs';
import { served } from './support/served.mjs';

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

const stage = served(config, 1);
const { settled, shows } = stage;
let browser;
let provider;
let server;
let page;
beforeEach(() => ({ browser, provider, server, page } = stage));

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

test('a truncated answer is withdrawn and streamed again', async () => {
  let cut;
  provider.says({ breaks: 'Half an ans', once: new Promise((resolve) => (cut = resolve)) }, 'A whole answer.');
  await send(page, 'Tell me');
  await shows('Half an ans');
  cut();
  await shows('A whole answer.');
  await settled();
  assert.deepEqual((await answers()).map((text) => text.trim()), ['A whole answer.']);
  await page.reload();
  await settled();
  assert.deepEqual((await answers()).map((text) => text.trim()), ['A whole answer.']);
  assert.equal(provider.requests.length, 2);
});

test('a usage limit shows its end, and can be skipped', async () => {
  provider.says(usedUp(2 * 24 * 3600), 'Here again.');
  await send(page, 'Tell me');
  await page.waitForFunction(() => /^Usage limit reached, continues \w/.test(document.querySelector('#wait-line').textContent));
  assert.match(await line(), /^Usage limit reached, continues \w{3},? \d{1,2}:\d{2}/);
  await page.locator('#retry-now').click();
  await shows('Here again.');
});

test('a turn that waits because of another one says so', async () => {
  provider.says(limited(60));
  await send(page, 'First');
  await page.waitForFunction(() => document.querySelector('#wait-line').textContent.startsWith('Rate limited'));
  const other = await openPage(browser, server.url);
  await send(other, 'Second');
  await other.waitForFunction(() => document.querySelector('#wait-note').textContent.includes('the provider said when to ask again'));
  assert.equal(provider.requests.length, 1, 'the second turn did not ask');
  provider.says('Now it works.');
  await other.locator('#retry-now').click();
  await shows('Now it works.', other);
  await other.context().close();
});
