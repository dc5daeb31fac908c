// The panel with the servers that share the conversations.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findings } from './support/axe.mjs';
import { picture } from './support/picture.mjs';
import { stage } from './support/stage.mjs';

const on = stage();
const { until } = on;

const node = (id, turns) => ({ id, name: `${id}.example:4777`, version: '0.1.0', startedAt: 1_790_000_000_000, turns });
const has = { models: ['main/large', 'route/best'], toolSources: ['github'] };
const button = () => on.page.locator('#nodes-button');
const rows = () => on.page.locator('#node-list li').allTextContents();

test('the servers are listed with their turns, and refreshed while the panel is open', async () => {
  on.server.cluster = { node: 'b', nodes: [node('a', 1), { ...node('b', 20), ...has }, node('c', 0)] };
  await on.open();
  await button().click();
  assert.deepEqual(await rows(), ['a.example:47771 turn', 'b.example:477720 turns · this server', 'c.example:47770 turns']);
  assert.deepEqual(await findings(on.page), []);
  // What each of them has is in its tooltip; older servers do not say.
  const titles = await on.page.locator('#node-list .name').evaluateAll((names) => names.map((name) => name.title));
  assert.deepEqual(titles, [
    'a, version 0.1.0',
    'b, version 0.1.0\nmodels: main/large, route/best\ntools: github',
    'c, version 0.1.0',
  ]);
  await picture(on.page, 'nodes');
  on.server.cluster = { node: 'b', nodes: [node('b', 21), node('c', 0)] };
  await until(() => document.querySelectorAll('#node-list li').length === 2);
  assert.deepEqual(await rows(), ['b.example:477721 turns · this server', 'c.example:47770 turns']);
  await on.page.keyboard.press('Escape');
  assert.ok(await on.page.locator('#nodes').isHidden());
  assert.deepEqual(on.page.wrongs, []);
});

test('a server that shares nothing has no panel', async () => {
  on.server.cluster = { nodes: [] };
  await on.open();
  assert.ok(await button().isHidden());
  assert.deepEqual(on.page.wrongs, []);
});
