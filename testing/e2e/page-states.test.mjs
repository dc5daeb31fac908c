// Every state of the page that the real server leads to, opened and left by keyboard alone (see support/states.mjs).
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPage } from './support/browser.mjs';
import { keysOf } from './support/keys.mjs';
import { startLocked } from './support/locked.mjs';
import { served } from './support/served.mjs';
import { WIDTHS, drawer, inDrawer, menu, nothing, noDrawer, panel, size, visit } from './support/states.mjs';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const PIXEL = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const KEY = 'sk-live-0123456789abcdefghij-WXYZ';
const REJECTED = { status: 401, body: { error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } } };
const UNPAID = { status: 402, body: { error: { message: 'Insufficient Balance', code: 402 } } };

const config = (url) => `
[tools]
dice = true

[tools.policy]
roll_dice = "ask"
"*" = "allow"

[[mcp]]
name = "hotel"
command = "${path('.venv/bin/python')}"
args = ["${path('../../integrations/mcp/tests/mcp/server.py')}"]

[[mcp]]
name = "every"
command = "${process.execPath}"
args = ["${path('node_modules/@modelcontextprotocol/server-everything/dist/index.js')}", "stdio"]

[[mcp]]
name = "locked"
url = "${locked.url}/mcp"

[[mcp]]
name = "away"
url = "http://127.0.0.1:9/mcp"

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one", "two"]
`;

const answered = (count) => (on) => on.page.waitForFunction((wanted) => document.querySelectorAll('.settled .turn[aria-busy=false]').length === wanted, count);
/** Has the provider behave like this, and tries the key again, at this address. */
const tryKey = (change, address) => async ({ keys, provider }) => {
  change(provider);
  await keys.to('#provider-address');
  await keys.press('Control+a');
  await keys.type(address ?? provider.url);
  await keys.press('Enter');
};
/** Sends a message, to which the model answers with this call, then with this text. */
const calls = (name, input) => async ({ keys, provider }) => {
  provider.says({ calls: [{ name, input }] });
  await keys.to('#prompt');
  await keys.type('Go on');
  await keys.press('Enter');
};
const answer = (button) => async ({ keys, provider }) => {
  provider.says('There they are.');
  await keys.activate('.question button', button);
};
const to = (selector, name) => ({ keys }) => keys.to(selector, name);

const PROVIDERS = [
  { name: 'start', open: nothing, shows: '#sample', leave: nothing },
  { name: 'providers', open: inDrawer('#providers-button'), shows: '#provider-form' },
  {
    name: 'a rejected key',
    open: async (on) => {
      await inDrawer('#providers-button')(on);
      const { keys, provider } = on;
      await keys.to('#provider-vendor');
      await keys.type('Other, with OpenAI');
      await keys.to('#provider-key');
      await keys.type(KEY);
      await keys.to('#provider-address');
      await keys.type(provider.url);
      provider.list = ['large'];
      provider.says(REJECTED);
      await keys.press('Enter');
    },
    shows: '#provider-result.bad',
    leave: tryKey(({ says }) => says(UNPAID)),
  },
  { name: 'no credit', open: nothing, shows: '#provider-result.bad:has-text("no credit left")', leave: tryKey((provider) => (provider.list = null)) },
  { name: 'no list of models', open: nothing, shows: '#provider-result.bad:has-text("could not be read")', leave: tryKey((provider) => (provider.list = ['large']), 'http://127.0.0.1:9/v1') },
  { name: 'no network', open: nothing, shows: '#provider-result.bad:has-text("could not be reached")', leave: tryKey(({ says }) => says('OK')) },
  { name: 'an added provider', open: nothing, shows: '#provider-result.good', leave: nothing },
  { name: 'remove a provider', open: ({ keys }) => keys.activate('button', 'Remove openai-compatible'), shows: 'dialog.ask' },
  { name: 'providers, to be closed', open: to('#providers-close'), shows: '#providers', leave: ({ keys }) => keys.press('Enter'), back: '#providers-button' },
];

const AROUND = [
  { name: 'usage', open: inDrawer('#usage-button'), shows: '#usage-models table' },
  { name: 'callers', open: inDrawer('#callers-button'), shows: '#caller-form' },
  { name: 'a caller’s limits', open: async (on) => (await inDrawer('#callers-button')(on), on.keys.activate('#caller-more summary'), on.keys.to('#caller-priority')), shows: '#caller-priority', back: '#callers-button' },
  { name: 'shortcuts', open: inDrawer('#help'), shows: '#shortcuts[open]' },
  { name: 'colours', open: async (on) => (await drawer(on), on.keys.to('#theme')), shows: '#theme', leave: noDrawer },
  { name: 'instructions', open: ({ keys }) => keys.activate('#instruct'), shows: '#instructions[open]' },
  {
    name: 'attachments and a toast',
    open: async ({ keys, page }) => {
      const chosen = page.waitForEvent('filechooser');
      await keys.activate('#attach');
      const file = (name, mimeType, buffer) => ({ name, mimeType, buffer });
      const refused = file('film.mp4', 'video/mp4', Buffer.from('x'));
      await (await chosen).setFiles([file('a.png', 'image/png', PIXEL), file('notes.txt', 'text/plain', Buffer.from('One.\nTwo.')), file('b.pdf', 'application/pdf', Buffer.from('%PDF-1.4\n')), refused]);
      await page.locator('#files li').waitFor();
      await page.locator('#images li').nth(1).waitFor();
      await keys.to('.toast button');
    },
    shows: '.toast',
    leave: async ({ keys, provider }) => {
      await keys.press('Enter');
      provider.says({ calls: [{ name: 'roll_dice', input: { sides: 20, count: 2 } }] });
      await keys.to('#prompt');
      await keys.type('Two dice for these');
      await keys.press('Enter');
    },
  },
];

const TOOLS = [
  {
    name: 'an approval',
    open: nothing,
    shows: '.approval',
    leave: async ({ keys, provider }) => {
      provider.says({ calls: [{ name: 'hotel__book', input: {} }] });
      await keys.activate('.approval button', 'in this conversation');
    },
  },
  { name: 'a question', open: to('.question input, .question select, .question textarea'), shows: '.question', leave: answer('Decline') },
  { name: 'an answer with calls', open: async (on) => (await answered(1)(on), on.keys.activate('.tool summary')), shows: '.tool[open]', leave: nothing },
  {
    name: 'a page to open',
    open: async (on) => {
      await on.page.waitForFunction(async () => (await (await fetch('tools')).json()).sources.find(({ name }) => name === 'every').status === 'up');
      await calls('every__trigger-url-elicitation', { url: 'http://pay.example/bill?nr=7', message: 'Pay first' })(on);
      await on.keys.to('.question a');
    },
    shows: '.question a',
    leave: answer('Cancel'),
  },
  { name: 'a form', open: async (on) => (await answered(2)(on), await calls('every__trigger-elicitation-request')(on), on.keys.to('.question .field-row input')), shows: '.question .field-row', leave: ({ keys }) => keys.press('Enter') },
  { name: 'a form with a mistake', open: nothing, shows: '.question .field-row :text("Required.")', leave: async (on) => (await on.keys.type('Ada'), answer('Send')(on)) },
  { name: 'allowed tools', ...panel('allowed'), open: async (on) => (await answered(3)(on), panel('allowed').open(on)) },
  { name: 'tools and a login', open: async (on) => (await panel('tools').open(on), on.keys.to('#tools .login button')), shows: '#tools .login', back: '#tools-button' },
];

const CONVERSATION = [
  { name: 'retry settings', ...panel('settings') },
  { name: 'conversation menu', open: menu(), shows: '#conversation-menu:popover-open' },
  { name: 'rename', open: menu('Rename'), shows: 'dialog.ask', back: '#conversation-button' },
  { name: 'delete', open: menu('Delete'), shows: 'dialog.ask', back: '#conversation-button' },
  {
    name: 'an export',
    open: async (on) => {
      const saved = on.page.waitForEvent('download');
      await menu('Export as Markdown')(on);
      await saved;
    },
    shows: '#conversation-button',
    leave: nothing,
  },
  { name: 'edit a message', open: ({ keys }) => keys.activate('.edit'), shows: '.turn textarea' },
  {
    name: 'a wait',
    open: async ({ keys, provider }) => {
      provider.says({ status: 429, headers: { 'retry-after': '600' }, body: { error: { message: 'Slow down' } } }, 'Here again.');
      await keys.activate('.edit');
      await keys.type('Again: ');
      await keys.press('Enter');
      await keys.to('#retry-now');
    },
    shows: '#banner',
    leave: ({ keys }) => keys.press('Enter'),
  },
  {
    name: 'an earlier version and failed attempts',
    open: async ({ keys, page }) => {
      await page.locator('.turn[aria-busy=false] .attempts').waitFor();
      await keys.activate('.replaced > summary');
      await keys.activate('.attempts > summary');
      await page.locator('.attempts li').waitFor();
    },
    shows: '.replaced[open]',
    leave: nothing,
  },
  { name: 'archived', open: async (on) => (await menu('Archive')(on), drawer(on), on.keys.activate('#list .archive button')), shows: '#list .away', leave: nothing },
  { name: 'a row’s menu', open: ({ keys }) => keys.activate('#list .more'), shows: '#conversation-menu:popover-open' },
  { name: 'search', open: async ({ keys }) => (await keys.to('#search'), keys.type('There they')), shows: '#list .found mark', leave: ({ keys }) => keys.press('Escape') },
  { name: 'nothing found', open: ({ keys }) => keys.type('nowhere'), shows: '#list .none:has-text("No title or message has this")', leave: ({ keys }) => keys.press('Escape') },
];

let locked;
before(async () => (locked = await startLocked()));
after(() => locked?.stop());
const on = served(config, 2, { isKept: true });

for (const width of WIDTHS) {
  test(`every state with the real server, ${width} px`, async () => {
    const page = await openPage(on.browser, on.server.url, size(width));
    await page.locator('#model option').first().waitFor({ state: 'attached' });
    await visit({ ...on, page, keys: keysOf(page) }, [...PROVIDERS, ...AROUND, ...TOOLS, ...CONVERSATION], width);
    await page.context().close();
  });
}
