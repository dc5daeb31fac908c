// Answers that come late: what was typed, chosen or changed meanwhile stays.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { send } from './support/browser.mjs';
import { served } from './support/served.mjs';

const stage = served((url) => `
[[provider]]
name = "sim"
base_url = "${url}"
models = ["one", "two", "three", "four"]
`, 4, { isKept: true });
const { settled, shows } = stage;
let page;
let provider;
beforeEach(() => ({ page, provider } = stage));

/** Holds back the answers to these requests, as the server gives them now. `next()` waits for one; calling it delivers the answer. */
async function hold(path, method = 'GET') {
  const held = [];
  const isMeant = (request) => request.method() === method && new URL(request.url()).pathname === path;
  await page.route('**/*', async (route) => {
    if (!isMeant(route.request())) return route.fallback();
    const response = await route.fetch();
    held.push(() => route.fulfill({ response }));
  });
  return {
    held,
    next: async () => {
      while (held.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      const answer = held.shift();
      return async () => {
        const come = page.waitForResponse((response) => isMeant(response.request()));
        await answer();
        await (await come).finished();
        await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      };
    },
    free: () => page.unroute('**/*'),
  };
}

async function ask(text, answer) {
  provider.says(answer);
  await send(page, text);
  await shows(answer);
  await settled();
}

const titles = () => page.locator('#list .name').allTextContents();
const choose = async (entry) => {
  await page.locator('#conversation-button').click();
  await page.locator('#conversation-menu button', { hasText: entry }).click();
};

test('a list from before does not undo what was renamed or deleted', async () => {
  await ask('First', 'One.');
  await page.locator('#new').click();
  await ask('Second', 'Two.');
  await page.waitForFunction(() => document.querySelectorAll('#list .name').length === 2);
  const lists = await hold('/conversations');
  /** Another client makes the page fetch the list. */
  const other = async (message) => {
    provider.says('Three.');
    await (await fetch(`${stage.server.url}/chat`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ message, conversationId: 'other' }) })).text();
    return lists.next();
  };
  const renaming = await other('Third');
  await choose('Rename…');
  await page.locator('dialog.ask input').fill('Renamed');
  await page.keyboard.press('Enter');
  await page.locator('#list .name', { hasText: 'Renamed' }).waitFor();
  await renaming();
  assert.ok((await titles()).includes('Renamed'), `${await titles()}`);
  while (!(await titles()).includes('Third')) await (await lists.next())();
  const deleting = await other('Fourth');
  await choose('Delete…');
  await page.locator('dialog.ask .danger').click();
  await page.locator('#list .name', { hasText: 'Renamed' }).waitFor({ state: 'detached' });
  await deleting();
  assert.ok(!(await titles()).includes('Renamed'), `${await titles()}`);
});

test('models that arrive late do not undo a choice', async () => {
  const models = await hold('/models');
  // The page does not ask before its socket is open.
  while (models.held.length === 0) {
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const late = await models.next();
  await page.locator('#model').selectOption('sim/three');
  await late();
  assert.equal(await page.locator('#model').inputValue(), 'sim/three');
});

test('two fallback models are removed one after the other, before the server has answered', async () => {
  const chain = ['sim/two', 'sim/three', 'sim/four'];
  const path = `${stage.server.url}/retry`;
  await fetch(path, { method: 'PATCH', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ fallbackChains: { 'sim/one': chain } }) });
  await page.locator('#settings-button').click();
  await page.locator('#fallback-model').selectOption('sim/one');
  await page.locator('#fallback-list li').nth(2).waitFor();
  const changes = await hold('/retry', 'PATCH');
  for (const name of chain.slice(0, 2)) await page.locator('#fallback-list').getByRole('button', { name: `Remove ${name}` }).click();
  const answers = [await changes.next(), await changes.next()];
  for (const answer of answers) await answer();
  const { set } = await (await fetch(path)).json();
  assert.deepEqual(set.fallbackChains, { 'sim/one': ['sim/four'] });
  assert.deepEqual(await page.locator('#fallback-list .name').allTextContents(), ['sim/four']);
});

test('a message that is being edited stays so when the conversation is loaded again', async () => {
  await ask('First', 'One.');
  await page.locator('.user', { hasText: 'First' }).hover();
  await page.locator('.user .edit').click();
  await page.locator('.revision textarea').fill('Better');
  await page.evaluate(() => (document.querySelector('.turn').dataset.old = 'yes'));
  await stage.crash();
  await page.waitForFunction(() => document.querySelector('.turn') && !document.querySelector('.turn').dataset.old);
  assert.equal(await page.locator('.revision textarea').inputValue(), 'Better');
  provider.says('Two.');
  await page.locator('.revision button[type=submit]').click();
  await shows('Two.');
  assert.equal(provider.requests.at(-1).said.at(-1), 'Better');
});

test('a message that is too long is not sent, new or edited', async () => {
  await ask('First', 'One.');
  const write = (field, text) => page.locator(field).evaluate((node, written) => (node.value = written), text);
  const long = 'ä'.repeat(600_000);
  await write('#prompt', long);
  await page.locator('#send').click();
  await page.locator('.toast', { hasText: 'at most 1 MiB' }).waitFor();
  assert.equal(await page.locator('#prompt').evaluate((node) => node.value.length), long.length);
  await page.locator('.user', { hasText: 'First' }).hover();
  await page.locator('.user .edit').click();
  // Controls are escaped, which makes the frame too large for the socket.
  for (const text of [long, '\x01'.repeat(1_000_000)]) {
    await write('.revision textarea', text);
    await page.locator('.revision button[type=submit]').click();
    await page.locator('.revision [role=alert]', { hasText: 'at most 1 MiB' }).waitFor();
    await page.locator('.revision textarea').fill('Better');
  }
  provider.says('Two.');
  await page.locator('.revision button[type=submit]').click();
  await shows('Two.');
  assert.equal(provider.requests.at(-1).said.at(-1), 'Better');
});

test('an image that was read late does not end up in another conversation, and is waited for before its message is sent', async () => {
  await ask('First', 'One.');
  /** Large files are decoded, which the test holds back. */
  await page.evaluate(() => {
    const decode = window.createImageBitmap;
    window.createImageBitmap = (...of) => new Promise((resolve) => (window.decoded = resolve)).then(() => decode(...of));
  });
  const picture = await page.screenshot({ fullPage: true });
  const file = { name: 'a.png', mimeType: 'image/png', buffer: Buffer.concat([picture, Buffer.alloc(600_000)]) };
  const isReading = () => page.waitForFunction(() => window.decoded);
  const ends = () => page.evaluate(async () => {
    window.decoded();
    delete window.decoded;
    for (let frames = 0; frames < 20; frames += 1) await new Promise(requestAnimationFrame);
  });
  await page.locator('#attach-file').setInputFiles([file]);
  await isReading();
  await page.locator('#new').click();
  await page.locator('#welcome').waitFor();
  await ends();
  assert.equal(await page.locator('#images li').count(), 0);
  await page.locator('#attach-file').setInputFiles([file]);
  await isReading();
  provider.says('A page.');
  await send(page, 'What is this?');
  await ends();
  await shows('A page.');
  assert.ok(JSON.stringify(provider.requests.at(-1).said).includes('data:image/webp;base64,'), 'the image was sent');
});
