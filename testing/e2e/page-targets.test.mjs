// The list of unavailable targets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stage } from './support/stage.mjs';

const on = stage();

test('unavailable targets are listed until they are available', async () => {
  on.server.targets = [{ target: 'demo/flaky' }];
  await on.open();
  assert.equal(await on.page.locator('#targets').isHidden(), true);
  const turn = await on.begin();
  const until = new Date(2030, 0, 1, 14, 5, 10).getTime();
  on.server.targets = [
    { target: 'demo/flaky', until, category: 'rate_limited' },
    { target: 'demo/other', until, category: 'auth' },
    { target: 'demo/third' },
  ];
  turn.tell({ type: 'target-switched', from: 'demo/flaky', to: 'demo/third', role: 'main', reason: 'demo/flaky is rate limited' });
  await on.page.locator('#target-list li').nth(1).waitFor();
  const rows = await on.page.locator('#target-list li').allInnerTexts();
  assert.match(rows[0], /^demo\/flaky\nrate limited until Jan 1, 2030 0?2:05:10\s?PM$/);
  assert.match(rows[1], /^demo\/other\nkey refused until /);
  assert.equal(rows.length, 2);
  on.server.targets = [{ target: 'demo/flaky' }];
  turn.tell({ type: 'step-complete', stepId: `${turn.id}#0` });
  await on.until(() => document.querySelector('#targets').hidden);
  turn.end();
  assert.deepEqual(on.page.wrongs, []);
});
