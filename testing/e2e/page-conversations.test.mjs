// The list of conversations: state, search, renaming, exporting and deleting, with the real server.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { beforeEach, test } from 'node:test';
import { openPage, send } from './support/browser.mjs';
import { picture } from './support/picture.mjs';
import { served } from './support/served.mjs';

const config = (url) => `
[retry]
schedule = "exponential"
base_ms = 600000
max_delay_ms = 0
jitter = 0.0

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one", "two"]
`;

const stage = served(config, 2, { isKept: true });
const { settled, shows } = stage;
let provider;
let server;
let page;
beforeEach(() => ({ provider, server, page } = stage));

const row = (title, on = page) => on.locator('#list li', { has: on.locator('.name', { hasText: title }) });
const titles = () => page.locator('#list .name').allTextContents();
const id = () => new URL(page.url()).hash.slice(4);
const listed = async () => (await fetch(`${server.url}/conversations`)).json();

/** Opens the menu of a conversation and picks an entry. */
async function pick(title, entry) {
  await row(title).hover();
  await row(title).locator('.more').click();
  await page.locator('#conversation-menu button', { hasText: entry }).click();
}

async function say(text, answer) {
  await page.locator('#new').click();
  await page.locator('#welcome').waitFor();
  if (answer) provider.says(answer);
  await send(page, text);
  if (answer) await shows(answer);
  else await page.locator('#banner').waitFor();
}

test('a conversation is renamed, found by its title, and keeps it', async () => {
  await say('About the storm', 'It passed.');
  await say('About the calm', 'It came.');
  await pick('About the storm', 'Rename');
  await page.locator('.ask input').fill('The great gale');
  await page.keyboard.press('Enter');
  await row('The great gale').waitFor();
  await page.locator('#search').fill('great');
  await page.waitForFunction(() => document.querySelectorAll('#list .name').length === 1);
  assert.deepEqual(await titles(), ['The great gale']);
  await page.locator('#search').fill('nothing like it');
  await page.locator('#list .none', { hasText: 'No title or message has this' }).waitFor();
  await page.locator('#search').fill('');
  await row('The great gale').locator('a').click();
  await shows('It passed.');
  assert.equal(await page.locator('#title').textContent(), 'The great gale');
  provider.says('Still so.');
  await send(page, 'Another message');
  await shows('Still so.');
  await stage.crash();
  await page.reload();
  await row('The great gale').waitFor();
  assert.deepEqual(page.wrongs.filter((wrong) => !/WebSocket|ERR_CONNECTION/.test(wrong)), []);
});

test('conversations are found by their messages', async () => {
  await say('One', 'The harvest is in.');
  await say('Two', 'The storm passed.');
  await page.locator('#search').fill('HARVEST the');
  await page.locator('#list .none', { hasText: 'Searching titles and messages' }).waitFor();
  await page.locator('#list .none', { hasText: 'All titles and messages were searched' }).waitFor();
  assert.deepEqual(await titles(), ['One']);
  await row('One').locator('a').click();
  await shows('The harvest is in.');
  await page.locator('#search').fill('two');
  await row('Two').waitFor();
  await row('One').waitFor({ state: 'detached' });
  await page.locator('#search').fill('the');
  await page.waitForFunction(() => document.querySelectorAll('#list .name').length === 2);
  assert.deepEqual(await titles(), ['Two', 'One']);
  await page.locator('#search').fill('');
  await page.locator('#list .none').waitFor({ state: 'detached' });
  assert.deepEqual(await titles(), ['Two', 'One']);
  assert.deepEqual(page.wrongs, []);
});

test('a hit shows the passage that was found, and Enter opens the selected hit', async () => {
  await say('One', `${'It was a long year. '.repeat(20)}The harvest is in, and <b>all</b> is well.`);
  await say('Two harvests', 'The storm passed.');
  await say('Three: is the harvest late?', 'Yes.');
  const search = page.locator('#search');
  const done = () => page.locator('#list .none', { hasText: 'All titles and messages were searched' }).waitFor();
  await search.fill('HARVEST');
  await done();
  assert.deepEqual(await titles(), ['Three: is the harvest late?', 'Two harvests', 'One']);
  const found = page.locator('#list .found:visible');
  assert.equal(await found.count(), 1, 'the others have it in their title');
  assert.match(await found.textContent(), /^….* It was a long year\. The harvest is in, and <b>all<\/b> is well\.$/);
  assert.deepEqual(await found.locator('mark').allTextContents(), ['harvest']);
  await picture(page, 'search');

  const selected = page.locator('#list .selected .name');
  assert.equal(await selected.textContent(), 'Three: is the harvest late?', 'the first one');
  await search.press('ArrowDown');
  await search.press('ArrowDown');
  await search.press('ArrowDown'); // there is no other
  assert.equal(await selected.textContent(), 'One');
  assert.match(await page.locator('#announcer').textContent(), /^One: …/);
  await search.press('Enter');
  await shows('is well.');
  await search.press('ArrowUp');
  await search.press('Enter');
  await shows('The storm passed.');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'search');

  await search.fill('nothing like it');
  await page.locator('#list .none', { hasText: 'No title or message' }).waitFor();
  await search.press('Enter');
  await search.fill('passed storm');
  await done();
  assert.deepEqual(await page.locator('#list .found mark').allTextContents(), ['storm', 'passed']);
  await search.press('Escape');
  for (const gone of [found, selected]) await gone.first().waitFor({ state: 'detached' });
  assert.deepEqual(page.wrongs, []);
});

test('the list shows the state of each conversation, also of one that is not open', async () => {
  await say('This one waits');
  await row('This one waits').locator('.dot.waiting').waitFor();
  assert.match(await row('This one waits').locator('time').textContent(), /^(10 min 00|9 min \d\d) s$/);
  await say('This one is done', 'Here.');
  await settled();
  const other = await openPage(stage.browser, server.url);
  await row('This one waits', other).locator('.dot.waiting').waitFor();
  assert.match(await row('This one waits', other).locator('time').textContent(), /^(10 min 00|9 min \d\d) s$/);
  assert.equal(await row('This one is done', other).locator('.dot.idle').count(), 1);
  await other.context().close();
});

test('the list says which conversations ended in a failure, until they are tried again', async () => {
  await say('This one is done', 'Here.');
  await page.locator('#new').click();
  await page.locator('#welcome').waitFor();
  provider.says({ status: 401, body: { error: { message: 'bad key' } } });
  await send(page, 'This one fails');
  const failed = (on) => row('This one fails', on).locator('time', { hasText: /^Failed · now$/ }).waitFor();
  await failed(page);
  await row('This one fails').locator('[role=img][aria-label=failed]').waitFor();
  assert.match(await row('This one is done').locator('time').textContent(), /^now$/);
  const other = await openPage(stage.browser, server.url);
  await failed(other);
  await stage.crash();
  await page.reload();
  await failed(page);
  await settled();
  provider.says('Better.');
  await page.locator('.again button').click();
  await shows('Better.');
  for (const on of [page, other]) await row('This one fails', on).locator('time', { hasText: /^now$/ }).waitFor();
  await other.context().close();
});

test('a conversation is deleted in the middle of a wait, after confirmation', async () => {
  await say('Keep me', 'Kept.');
  await say('Delete me');
  const deleted = id();
  const other = await openPage(stage.browser, `${server.url}/#/c/${deleted}`);
  await other.locator('#banner').waitFor();
  await page.locator('#conversation-button').click();
  await page.locator('#conversation-menu button', { hasText: 'Delete' }).click();
  assert.match(await page.locator('.ask p').textContent(), /^“Delete me” will be deleted for good. Its running answer will be stopped.$/);
  await page.locator('.ask button', { hasText: 'Cancel' }).click();
  assert.equal((await listed()).length, 2, 'nothing happens without the answer');
  await page.locator('#conversation-button').click();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await page.locator('.ask .danger').click();
  await row('Delete me').waitFor({ state: 'detached' });
  await page.locator('#welcome').waitFor();
  assert.deepEqual((await listed()).map(({ title }) => title), ['Keep me']);
  await other.locator('.notice', { hasText: 'Conversation not found.' }).waitFor();
  await row('Delete me', other).waitFor({ state: 'detached' });
  await other.context().close();
  assert.equal(provider.requests.length, 2);
});

test('a conversation is exported as JSON and as Markdown', async () => {
  provider.says('It is `4`.\n\n```js\n2 + 2\n```');
  await send(page, 'What is **two** and two?');
  await shows('2 + 2');
  await settled();
  const exported = async (entry) => {
    const coming = page.waitForEvent('download');
    await pick('What is', entry);
    const download = await coming;
    return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') };
  };
  const markdown = await exported('Export as Markdown');
  assert.equal(markdown.name, 'What-is-two-and-two.md');
  assert.equal(
    markdown.text,
    '# What is **two** and two?\n\n## You\n\nWhat is **two** and two?\n\n## Assistant\n\nIt is `4`.\n\n```js\n2 + 2\n```\n',
  );
  const json = await exported('Export as JSON');
  assert.equal(json.name, 'What-is-two-and-two.jsonl');
  const [conversation, ...chunks] = json.text.trimEnd().split('\n').map(JSON.parse);
  assert.deepEqual([conversation.id, conversation.model], [id(), 'sim/one']);
  assert.deepEqual(chunks.map(({ seq, role }) => [seq, role]), [[1, 'user'], [2, 'assistant']]);
  await pick('What is', 'Rename');
  await page.locator('.ask input').fill('Wie viel ist größer?');
  await page.keyboard.press('Enter');
  await row('Wie viel').waitFor();
  const coming = page.waitForEvent('download');
  await pick('Wie viel', 'Export as JSON');
  assert.equal((await coming).suggestedFilename(), 'Wie-viel-ist-größer.jsonl');
  assert.deepEqual(page.wrongs, []);
});
