// The surroundings of a conversation: addresses, drafts, toasts, the clipboard.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { launch, openPage, send } from './support/browser.mjs';
import { stage } from './support/stage.mjs';

const on = stage();

for (const address of ['nowhere', 'not%20an%20id', '..']) {
  test(`an unknown conversation (${address}) is told, is not made, and a new one can be begun`, async () => {
    await on.open(`/#/c/${address}`);
    await on.page.locator('.notice', { hasText: 'Conversation not found.' }).waitFor();
    assert.equal(await on.page.locator('#title').textContent(), 'Conversation not found');
    assert.equal(await on.page.locator('.toast').count(), 0);
    assert.equal(await on.page.locator('#prompt').isDisabled(), true);
    assert.equal(await on.page.locator('#send').isDisabled(), true);
    await on.page.locator('.notice a').click();
    await on.begin('Hello');
    assert.equal(on.server.conversations.has(address), false);
    assert.match(on.commands('chat.send')[0].conversationId, /^[0-9a-f]{32}$/);
  });
}

test('nothing is sent before the conversation in the address is known to exist', async () => {
  on.server.beforeAnswer = async (path) => path.startsWith('/conversations/') && new Promise(() => {});
  on.server.conversation('somewhere');
  await on.open('/#/c/somewhere');
  await on.until(() => document.querySelector('#connection').textContent === '');
  await send(on.page, 'Hello');
  assert.deepEqual(on.commands('chat.send'), []);
  assert.equal(await on.page.locator('#prompt').inputValue(), 'Hello');
});

test('a conversation created meanwhile is shown', async () => {
  await on.open('/#/c/soon');
  await on.page.locator('.notice').waitFor();
  on.server.conversation('soon').begin('Here').say('Yes.');
  await on.shows('Yes.');
  assert.equal(await on.page.locator('#prompt').isDisabled(), false);
});

test('a draft stays with its conversation', async () => {
  for (const id of ['a', 'b']) on.server.conversation(id).begin(`In ${id}`).end();
  await on.open('/#/c/a');
  const go = (hash) => on.page.evaluate((to) => (location.hash = to), hash);
  const draft = (text) => on.until((wanted) => document.querySelector('#prompt').value === wanted, text);
  await on.shows('In a');
  await on.page.locator('#prompt').fill('for a');
  await go('#/c/b');
  await on.shows('In b');
  await draft('');
  await on.page.locator('#prompt').fill('for b');
  await go('#/');
  await draft('');
  await on.page.locator('#prompt').fill('for a new one');
  await go('#/c/a');
  await draft('for a');
  await go('#/c/b');
  await draft('for b');
  await go('#/');
  await draft('for a new one');
  await on.begins(() => on.page.locator('#send').click());
  await go('#/c/a');
  await draft('for a');
  await go('#/');
  await draft('');
});

test('a toast disappears with its cause', async () => {
  await on.open();
  const turn = await on.begin();
  const toasts = () => on.page.locator('.toast p').allTextContents();
  await on.away();
  await send(on.page, 'Still here?');
  await send(on.page, 'Still here?');
  assert.deepEqual(await toasts(), ['Not connected. Your message was not sent.']);
  await on.back();
  assert.deepEqual(await toasts(), []);

  turn.conversation.enqueue = () => on.server.broadcast({ type: 'chat.error', conversationId: turn.conversation.id, message: 'No.' });
  await send(on.page, 'More');
  await on.page.locator('.toast', { hasText: 'No.' }).waitFor();
  delete turn.conversation.enqueue;
  await send(on.page, 'More');
  await on.page.locator('#queue li').waitFor();
  assert.deepEqual(await toasts(), []);
});

test('a queued message that cannot be removed says so', async () => {
  await on.open();
  await on.begin();
  await send(on.page, 'Later');
  await on.page.locator('#queue li').waitFor();
  await on.away();
  await on.page.locator('#queue li button').click();
  await on.page.locator('.toast', { hasText: 'Not connected. The message is still queued.' }).waitFor();
  await on.back();
});

test('code is copied also where the page is served over http in a local network', async () => {
  const { port } = on.server;
  const browser = await launch(['--host-resolver-rules=MAP everturn.test 127.0.0.1']);
  try {
    const page = await openPage(browser, `http://everturn.test:${port}/`);
    assert.equal(await page.evaluate(() => isSecureContext), false);
    on.server.onTurn = (turn) => turn.say('```\nlet a = "<b>";\n  b\n```\n');
    await send(page, 'Code');
    await page.locator('.copy').click();
    await page.locator('.copy', { hasText: 'Copied' }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.className), 'copy quiet');
    await page.locator('#prompt').focus();
    await page.keyboard.press('Control+V');
    assert.equal(await page.locator('#prompt').inputValue(), 'let a = "<b>";\n  b');
    assert.deepEqual(page.wrongs, []);
  } finally {
    await browser.close();
  }
});

test('a message written before the page is connected is sent as soon as it is', async () => {
  let open;
  on.server.opensSockets = new Promise((resolve) => (open = resolve));
  await on.open();
  await send(on.page, 'Too early?');
  assert.equal(await on.page.locator('.toast').count(), 0);
  assert.equal(await on.page.locator('#prompt').inputValue(), 'Too early?');
  await on.begins(open);
  assert.deepEqual(await on.bubbles(), ['Too early?']);
  assert.equal(await on.page.locator('#prompt').inputValue(), '');
  assert.equal(on.commands('chat.send').length, 1);
});
