// The page while its server is killed or stopped, and restarted with the same file.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { answerText, send } from './support/browser.mjs';
import { served } from './support/served.mjs';

// Waits that no test sits through, however slow the machine.
const config = (url) => `
[retry]
schedule = "exponential"
base_ms = 600000
max_delay_ms = 0
jitter = 0.0

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]
`;

const stage = served(config, 1, { isKept: true });
const { settled, shows } = stage;
let provider;
let page;
beforeEach(() => ({ provider, page } = stage));

const waits = (number) =>
  page.waitForFunction((n) => document.querySelector('#wait-note').textContent.startsWith(`Retry ${n}`), number);
const line = () => page.locator('#wait-line').textContent();

/** When the wait ends, as the server tells it. */
async function waitsUntil() {
  const id = new URL(page.url()).hash.slice(4);
  const { retry } = await (await fetch(`${stage.server.url}/conversations/${id}/status`)).json();
  return retry.nextAt;
}

test('a wait continues after the server is killed, while somebody watches', async () => {
  provider.says(null, null, 'Here again.');
  await send(page, 'hello');
  await waits(1);
  await page.locator('#retry-now').click();
  await waits(2);
  const until = await waitsUntil();
  await stage.crash();
  await waits(2);
  assert.equal(await waitsUntil(), until, 'the wait begins anew');
  assert.match(await line(), /^Server overloaded, retrying in (20 min 00|1\d min \d\d) s$/);
  await page.locator('#retry-now').click();
  await shows('Here again.');
  await settled();
  assert.equal(provider.requests.length, 3);
});

test('a turn is stopped with a button pressed while the server was down', async () => {
  provider.says(null);
  await send(page, 'hello');
  await waits(1);
  await stage.crash({
    meanwhile: async () => {
      await page.locator('#stop').click();
      await page.locator('#connection', { hasText: '“Stop” will be sent.' }).waitFor();
    },
  });
  await page.locator('.note', { hasText: 'Stopped.' }).waitFor();
  await settled();
  assert.equal(await page.locator('#stop').isHidden(), true);
});

for (const signal of ['SIGTERM', 'SIGKILL']) {
  test(`what a server streamed when ${signal} ended it is shown once, and the rest comes with the next start`, async () => {
    provider.says(null, { breaks: 'Half an ans', once: new Promise(() => {}) }, 'Half an answer, and the rest.');
    await send(page, 'hello');
    await waits(1);
    await page.locator('#retry-now').click();
    await shows('Half an ans');
    await stage.crash({ signal });
    await shows('and the rest.');
    await settled();
    assert.equal(await answerText(page), 'Half an answer, and the rest.');
    await page.reload();
    await page.locator('.history .answer').first().waitFor();
    assert.equal(await answerText(page), 'Half an answer, and the rest.');
    assert.equal(provider.requests.length, 3);
  });
}
