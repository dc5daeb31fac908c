// Questions of MCP servers (elicitation), answered on the page: with the real server, and real MCP servers in Node and Python.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage, send } from './support/browser.mjs';
import { served } from './support/served.mjs';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const EVERYTHING = path('node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const BAD_DAYS = path('../../integrations/mcp/tests/mcp/server.py');

const config = (url) => `
[tools.policy]
"*" = "allow"

[[mcp]]
name = "every"
command = "${process.execPath}"
args = ["${EVERYTHING}", "stdio"]

[[mcp]]
name = "hotel"
command = "${path('.venv/bin/python')}"
args = ["${BAD_DAYS}"]

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]
`;
const stage = served(config, 1, { isKept: true });
const { settled, shows } = stage;
let browser;
let provider;
let server;
let page;
beforeEach(async () => {
  ({ browser, provider, server, page } = stage);
  const isUp = async () => {
    const { sources } = await (await fetch(`${server.url}/tools`)).json();
    return sources.every(({ status }) => status === 'up');
  };
  for (const end = Date.now() + 120_000; !(await isUp()); ) assert.ok(Date.now() < end, 'the MCP servers are up in time');
});

const card = (on = page) => on.locator('.question');
const answered = (on = page) => on.locator('.permission > p').allTextContents();
/** How the questions ended, and whether that is marked as a refusal. */
const lines = () => page.locator('.permission > p').evaluateAll((nodes) => nodes.map(({ textContent, className }) => [textContent, className]));

/** The page shows the same from history, without the events. */
async function isSame(...expected) {
  const live = await lines();
  assert.deepEqual(live.map(([text]) => text), expected);
  await page.reload();
  await page.locator('.history .tool').first().waitFor();
  assert.deepEqual(await lines(), live);
}
const button = (name, on = page) => card(on).getByRole('button', { name });
/** The result of the last call, as the model got it. */
const told = () => provider.requests.at(-1).said.at(-1);

/** Has the model call a tool that asks, and waits for the question. */
async function ask(name, input = {}, on = page) {
  provider.says({ calls: [{ name, input }] });
  await send(on, 'Go');
  await card(on).waitFor();
}

async function ends(on = page) {
  await shows('Done then.', on);
  await settled(on);
  assert.equal(await card(on).count(), 0);
}

test('a form is filled, checked and sent, and survives a reload', async () => {
  await ask('every__trigger-elicitation-request');
  assert.equal(await card().getAttribute('aria-label'), 'every asks you');
  await page.waitForFunction(() => document.querySelector('#list time')?.textContent === 'Needs you');
  assert.equal(await card().locator('.field-row').count(), 13);
  const { top, bottom } = await card().evaluate((node) => node.getBoundingClientRect().toJSON());
  assert.ok(top >= 0 && bottom > 720, `a form that is longer than the page shows its start: ${top} to ${bottom}`);
  assert.equal(await page.getByLabel('Integer').inputValue(), '42', 'the default');
  await button('Send').click();
  await card().getByText('Required.').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.labels[0].textContent), 'String');
  await page.reload();
  await card().waitFor();
  await page.getByLabel('String', { exact: true }).fill('Ada');
  await page.getByLabel('Integer').fill('700');
  await button('Send').click();
  await page.waitForFunction(() => document.activeElement.type === 'number');
  await page.getByLabel('Integer').fill('7');
  await page.getByLabel('Boolean').check();
  await page.getByLabel('String with email format').fill('ada@example.org');
  await page.getByLabel('String with date format').fill('1815-12-10');
  await page.getByLabel('Titled Single Select Enum (optional)', { exact: true }).selectOption('Wonder Woman');
  await card().getByRole('group', { name: 'Untitled Multiple Select Enum' }).getByLabel('Piano').check();
  provider.says('Done then.');
  await button('Send').click();
  await ends();
  for (const part of ['"name": "Ada"', '"integer": 7', '"check": true', '"email": "ada@example.org"', '"birthdate": "1815-12-10"', '"hero-3"', '"Piano"', '"number": 3.14']) {
    assert.ok(told().includes(part), `${part}: ${told()}`);
  }
  assert.ok(!told().includes('homepage'), 'what is empty is left out');
  await card().waitFor({ state: 'detached' });
  await isSame('Answered (every) (page)');
  const exported = await (await fetch(`${server.url}/conversations/${/#\/c\/(.+)$/.exec(page.url())[1]}/export?format=markdown`)).text();
  assert.ok(exported.includes('Ada'), 'only because the tool repeats it in its result');
  assert.deepEqual(page.wrongs, []);
});

test('a question is declined on one page and disappears on the other', async () => {
  await ask('hotel__book');
  assert.equal(await card().locator('.question-message').textContent(), 'Which room?');
  const other = await openPage(browser, page.url());
  await card(other).waitFor();
  await button('Decline').click();
  provider.says('Done then.');
  await card(other).waitFor({ state: 'detached' });
  assert.deepEqual(await answered(other), ['Declined to answer (hotel) (page)']);
  await ends();
  await other.context().close();
  await isSame('Declined to answer (hotel) (page)');
  assert.deepEqual(page.wrongs, []);
});

test('a page is shown with its host, and opened only by the person', async () => {
  await ask('every__trigger-url-elicitation', { url: 'https://pay.example/bill?nr=7', message: 'Pay first' });
  const link = card().locator('a');
  assert.deepEqual([await link.getAttribute('href'), await link.getAttribute('rel'), await link.getAttribute('target')], ['https://pay.example/bill?nr=7', 'noopener noreferrer', '_blank']);
  assert.equal(await card().locator('strong').textContent(), 'pay.example');
  assert.equal(page.context().pages().length, 1, 'nothing was opened');
  provider.says('Done then.');
  await button('I opened it').click();
  await ends();
  assert.match(told(), /"action": "accept"/);
  await isSame('Answered (every) (page)');
  await ask('every__trigger-url-elicitation', { url: 'https://pay.example/bill?nr=8', message: 'Pay again' });
  provider.says('Done then.');
  await button('Cancel').click();
  await page.waitForFunction(() => document.querySelectorAll('.settled .turn[aria-busy=false]').length === 2);
  await isSame('Answered (every) (page)', 'Dismissed the question (every) (page)');
  assert.deepEqual(page.wrongs, []);
});

test('a stop takes the question back, and one that was interrupted is not left open after a restart', async () => {
  await ask('hotel__book');
  await page.locator('#stop').click();
  await card().waitFor({ state: 'detached' });
  await settled();
  await isSame();
  await ask('hotel__book');
  await stage.crash({ meanwhile: async () => provider.says('Done then.') });
  await ends();
});
