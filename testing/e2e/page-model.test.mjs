// The model or route of each conversation, and the model of each answer, with the real server.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { openPage, send } from './support/browser.mjs';
import { served } from './support/served.mjs';

const config = (url) => `
[[provider]]
name = "sim"
base_url = "${url}"
models = ["one", "two"]

[[route]]
name = "main"
targets = ["sim/two", "sim/one"]
`;

const stage = served(config, 3);
const { shows, settled } = stage;
let provider;
let server;
let page;
beforeEach(() => ({ provider, server, page } = stage));

const feet = (on = page) => on.locator('.turn .foot').allTextContents();
const hasModel = (name) => page.waitForFunction((wanted) => [...document.querySelectorAll('.turn .foot')].at(-1).textContent.startsWith(`${wanted} · `), name);
const picked = (name, on = page) => on.waitForFunction((wanted) => document.querySelector('#model').value === wanted, name);

test('each conversation keeps its model, and each answer shows its model', async () => {
  provider.says('By the first.', 'By the second.', 'By the route.');
  await send(page, 'Alpha');
  await shows('By the first.');
  await hasModel('sim/one');
  await page.locator('#model').selectOption('sim/two');
  await send(page, 'Again');
  await shows('By the second.');
  await hasModel('sim/two');
  await page.locator('#new').click();
  await page.locator('#welcome').waitFor();
  await page.locator('#model').selectOption('route/main');
  await send(page, 'Beta');
  await shows('By the route.');
  await hasModel('sim/two');
  await settled();
  // A click may miss a row that moves: the new conversation comes first.
  await page.waitForFunction(() => document.querySelector('#list a').textContent.includes('Beta'));
  await page.locator('#list a', { hasText: 'Alpha' }).click();
  await shows('By the first.');
  await picked('sim/two');
  const shown = await feet();
  assert.deepEqual(shown.map((text) => text.split(' · ')[0]), ['sim/one', 'sim/two']);
  await page.locator('#list a', { hasText: 'Beta' }).click();
  await picked('route/main');
  // In another browser too, because the server stores it.
  const other = await openPage(stage.browser, page.url());
  await picked('route/main', other);
  await shows('By the route.', other);
  assert.deepEqual((await feet(other)).map((text) => text.split(' · ')[0]), ['sim/two']);
  await other.context().close();
  // An unused choice is kept while another conversation is open.
  await page.locator('#model').selectOption('sim/one');
  await page.locator('#list a', { hasText: 'Alpha' }).click();
  await picked('sim/two');
  await page.locator('#list a', { hasText: 'Beta' }).click();
  await picked('sim/one');
  assert.deepEqual(provider.requests.map(({ model }) => model), ['one', 'two', 'two']);
  assert.deepEqual(page.wrongs, []);
});

test('a conversation that is too old for the list keeps its model', async () => {
  provider.says('By the second.', 'By the second again.');
  await page.locator('#model').selectOption('sim/two');
  await send(page, 'Alpha');
  await shows('By the second.');
  await settled();
  await page.evaluate(() => localStorage.setItem('everturn.model', 'sim/one'));
  const isList = (url) => url.pathname === '/conversations' && !url.searchParams.has('search');
  await page.route(isList, (route) => route.fulfill({ json: [], headers: { link: '</conversations?limit=500&before=x>; rel="next"' } }));
  await page.reload();
  await shows('By the second.');
  await page.locator('#list', { hasText: 'Search to find older conversations' }).waitFor();
  await picked('');
  assert.equal(await page.locator('#model option:checked').textContent(), 'Model as before');
  await send(page, 'Again');
  await shows('By the second again.');
  assert.deepEqual(provider.requests.map(({ model }) => model), ['two', 'two']);
  await page.unroute(isList);
  await settled();
  await page.reload();
  await picked('sim/two');
  await page.waitForFunction(() => document.querySelectorAll('#model option').length === 3);
});
