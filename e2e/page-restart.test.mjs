// The page while its server is killed or stopped, and restarted with the same file.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { startServer } from './support/binary.mjs';
import { answerText, launch, openPage, send } from './support/browser.mjs';

let browser;
let directory;
let data;
let server;
let page;

before(async () => {
  browser = await launch();
});
after(() => browser?.close());
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'everturn-'));
  data = join(directory, 'everturn.db');
  server = await startServer([], {}, { data });
  page = await openPage(browser, server.url);
});
afterEach(async () => {
  await page?.context().close();
  await server?.stop();
  await rm(directory, { recursive: true, force: true });
});

const until = (condition, argument) => page.waitForFunction(condition, argument);
const reconnecting = () => page.locator('#connection', { hasText: 'Reconnecting' }).waitFor();
const connected = () => until(() => document.querySelector('#connection').textContent === '');
const sealed = () =>
  page.waitForFunction(() => !document.querySelector('.turn[aria-busy=true]') && document.querySelector('.foot'), null, {
    timeout: 30_000,
  });
/** The seconds left, as shown by the banner. */
const left = async () => Number(/retrying in (\d+) s/.exec(await page.locator('#wait-line').textContent())?.[1]);
const counts = (below) =>
  until((most) => Number(/retrying in (\d+) s/.exec(document.querySelector('#wait-line').textContent)?.[1]) < most, below);

/** Restarts the server at the same address. */
async function again() {
  server = await startServer([], {}, { data, listen: new URL(server.url).host });
}

/** Checks that history has what is shown, and each word of it once. */
async function isWhole() {
  const shown = await answerText(page);
  assert.match(shown, /Nothing was lost and nothing was said twice/);
  assert.equal(shown.match(/Your message/g).length, 1, shown);
  await page.reload();
  await page.locator('.history .answer').first().waitFor();
  assert.equal(await answerText(page), shown);
}

test('a wait continues after the server is killed, while somebody watches', async () => {
  await send(page, 'hello');
  await counts(5);
  await page.locator('#retry-now').click();
  await counts(9);
  await server.stop('SIGKILL');
  await reconnecting();
  await again();
  await connected();
  assert.ok((await left()) < 9, 'the wait begins anew');
  await page.locator('#retry-now').click();
  await sealed();
  await isWhole();
});

test('a turn is stopped with a button pressed while the server was down', async () => {
  await send(page, 'hello');
  await counts(6);
  await server.stop('SIGKILL');
  await reconnecting();
  await page.locator('#stop').click();
  await page.locator('#connection', { hasText: '“Stop” will be sent.' }).waitFor();
  await again();
  await connected();
  await page.locator('.note', { hasText: 'Stopped.' }).waitFor();
  await sealed();
  assert.equal(await page.locator('#stop').isHidden(), true);
});

for (const signal of ['SIGTERM', 'SIGKILL']) {
  test(`what a server streamed when ${signal} ended it is shown once, and the rest comes with the next start`, async () => {
    await send(page, 'hello');
    await counts(6);
    await page.locator('#retry-now').click();
    await counts(11);
    await page.locator('#retry-now').click();
    await until(() => document.querySelector('.answer')?.innerText.includes('Your message'));
    await server.stop(signal);
    await reconnecting();
    await again();
    await connected();
    await sealed();
    await isWhole();
  });
}
