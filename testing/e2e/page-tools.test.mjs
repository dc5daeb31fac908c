// The tools panel: sources, server states, policies, and claims.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stage } from './support/stage.mjs';

const on = stage();
const { until } = on;

const tool = (name, policy, more = {}) => ({ name, policy, description: `Does ${name}.`, inputSchema: {}, ...more });
const FILES = {
  name: 'files',
  status: 'up',
  tools: [
    tool('files__read', 'allow', { annotations: { readOnly: true } }),
    tool('files__write', 'ask', { annotations: { destructive: true, idempotent: true, openWorld: true } }),
    tool('files__wipe', 'deny', { description: 'One\n<b>two</b>\u202e' }),
  ],
};
const button = () => on.page.locator('#tools-button');
const sources = () => on.page.locator('.tool-source h3').allTextContents();

/** Opens the page and the panel. */
async function open(tools) {
  on.server.tools = tools;
  await on.open();
  await button().click();
  await on.page.locator('.tool-source').first().waitFor();
}

test('tools are listed by server, with their policies and claims', async () => {
  await open({ tools: [tool('roll_dice', 'review')], sources: [FILES] });
  assert.deepEqual(await sources(), ['Built in', 'filesrunning']);
  const rows = on.page.locator('.tool-source summary');
  assert.deepEqual(await rows.allTextContents(), ['roll_diceis reviewed', 'readruns', 'writeasks you', 'wipedenied']);
  await rows.nth(2).click();
  const write = on.page.locator('.tool-source details').nth(2);
  assert.deepEqual(await write.locator('p').allTextContents(), [
    'Does files__write.',
    'The server claims: may destroy data, can be repeated safely, reaches beyond its server. Not checked.',
  ]);
  assert.equal(await on.page.locator('.about').nth(3).textContent(), 'One\n<b>two</b><U+202E>');
  assert.equal(await on.page.locator('#tools b').count(), 0);
  assert.deepEqual(on.page.wrongs, []);
});

test('the name of a tool has the room, whatever its policy', async () => {
  await open({ tools: ['allow', 'ask', 'review', 'deny'].map((policy) => tool(`which_is_to_${policy}`, policy)), sources: [] });
  const heights = await on.page.locator('.tool-source summary').evaluateAll((rows) => rows.map((row) => row.offsetHeight));
  assert.equal(new Set(heights).size, 1, `each on one line: ${heights}`);
});

test('a server that is starting or failed says so, and is refreshed', async () => {
  const starting = { name: 'slow', status: 'starting', tools: [] };
  const down = { name: 'web', status: 'down', message: 'it ended: no key. Restarting in 4 s', tools: [] };
  await open({ tools: [], sources: [starting, down] });
  assert.deepEqual(await sources(), ['slowstarting…', 'webnot running']);
  assert.equal(await on.page.locator('.reason').textContent(), down.message);
  on.server.tools = { tools: [], sources: [{ ...FILES, name: 'slow', tools: [tool('slow__look', 'ask')] }, down] };
  await until(() => document.querySelector('.tool-source .state').textContent === 'running');
  assert.deepEqual(await on.page.locator('.tool-source summary .name').allTextContents(), ['look']);
  assert.deepEqual(on.page.wrongs, []);
});

test('without tools there is no panel; Escape closes it and stops nothing', async () => {
  await on.open();
  assert.ok(await button().isHidden());
  on.server.tools = { tools: [tool('roll_dice', 'allow')], sources: [] };
  await on.page.reload();
  const turn = await on.begin();
  await button().click();
  await on.page.locator('.tool-source').waitFor();
  await on.page.keyboard.press('Escape');
  await on.page.locator('#tools').waitFor({ state: 'hidden' });
  assert.deepEqual(on.commands('chat.stop'), []);
  turn.end();
  await on.sealed();
  assert.deepEqual(on.page.wrongs, []);
});

test('a refusal, or a server that is down, is told at once', async () => {
  await open({ tools: [], sources: [FILES] });
  let asked = 0;
  on.page.on('request', (request) => (asked += request.url().endsWith('/tools') ? 1 : 0));
  const tells = async (what) => {
    await on.page.keyboard.press('Escape');
    asked = 0;
    await button().click();
    await until((text) => document.querySelector('#tools-problem').textContent.startsWith(text), `Not up to date: ${what}`);
    assert.equal(asked, 1);
  };
  await on.page.route('**/tools', (route) => route.fulfill({ status: 503, json: { error: 'too busy' } }), { times: 1 });
  await tells('too busy');
  await on.away();
  await tells('');
  await on.back();
});
