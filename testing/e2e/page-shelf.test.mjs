// Conversations that are pinned or archived, in this browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findings } from './support/axe.mjs';
import { stage } from './support/stage.mjs';

const on = stage();
const listed = (...expected) => on.until((wanted) => [...document.querySelectorAll('#list .name')].map((each) => each.textContent).join() === wanted, expected.join());

async function converse(...texts) {
  for (const text of texts) {
    await on.page.locator('#new').click();
    const turn = await on.begin(text);
    turn.say('Yes.');
    turn.end();
    await on.sealed();
  }
}

async function choose(name, action) {
  await on.page.getByRole('button', { name: `Actions for ${name}` }).focus();
  await on.page.keyboard.press('Enter');
  await on.page.getByRole('menuitem', { name: action, exact: true }).click();
}

test('a pinned conversation stays on top, and an archived one is put away', async () => {
  await on.open('/', { reducedMotion: 'reduce' });
  await converse('One', 'Two', 'Three');
  await listed('Three', 'Two', 'One');
  await choose('One', 'Pin');
  await listed('One', 'Three', 'Two');
  await choose('Two', 'Archive');
  await listed('One', 'Three');
  await on.page.reload();
  await listed('One', 'Three');
  assert.equal(await on.page.getByRole('img', { name: 'Pinned' }).count(), 1);
  const archive = on.page.getByRole('button', { name: 'Archived (1)' });
  assert.equal(await archive.getAttribute('aria-expanded'), 'false');
  await archive.click();
  await listed('One', 'Three', 'Two');
  assert.deepEqual(await findings(on.page), []);
  await choose('Two', 'Return from archive');
  await listed('One', 'Three', 'Two');
  await choose('One', 'Unpin');
  await listed('Three', 'Two', 'One');
  assert.equal(await on.page.locator('#list .archive').count(), 0);
  assert.deepEqual(on.page.wrongs, []);
});

test('an archived conversation is found by a search, and comes back when it needs someone', async () => {
  await on.open('/', { reducedMotion: 'reduce' });
  await converse('One', 'Two');
  await choose('One', 'Archive');
  await listed('Two');
  await on.page.locator('#search').fill('One');
  await listed('One');
  await on.page.locator('#search').fill('');
  await listed('Two');
  const [one] = [...on.server.conversations.values()].filter(({ summary }) => summary.title === 'One');
  one.summary.status = 'queued';
  on.server.broadcast({ type: 'conversation.statusChanged', conversationId: one.id, status: 'queued' });
  // A list that was requested before may still arrive, and be replaced.
  await on.until(() => [...document.querySelectorAll('#list .name')].map((each) => each.textContent).toSorted().join() === 'One,Two');
});
