// Conversations that exceed the model's context, on the page, with the real server and a provider on loopback that
// enforces a token limit.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { openPage, send } from './support/browser.mjs';
import { picture } from './support/picture.mjs';
import { served } from './support/served.mjs';

/** The model's context, in tokens. */
const LIMIT = 1000;

const config = (url) => `
[retry]
schedule = "exponential"
base_ms = 300
max_retries = 3
jitter = 0.0

[[provider]]
name = "sim"
base_url = "${url}"
models = ["plain", "known"]
context_window = { known = ${LIMIT} }
`;

const stage = served(config, 2, { isKept: true });
const { settled, shows } = stage;
let browser;
let provider;
let page;
beforeEach(() => {
  ({ browser, provider, page } = stage);
  provider.limit = LIMIT;
});

const RUNNING = 'The conversation is too long for the model: summarizing earlier messages…';
const SUMMARIZED = 'Earlier messages were summarized for the model';
const SUMMARY = 'Ada plans three days in Lisbon.\nThe museum is on <b>Tuesday</b>.';
const QUESTIONS = ['Where do I go first?', 'What about the museum?', 'And on the third day?', 'Sum it up, please.'];
const ANSWER = `It depends on the weather: ${'the river is best in the morning, '.repeat(40)}and that is all.`;

const busy = (seconds) => ({ status: 529, headers: { 'retry-after': String(seconds) }, body: { error: { message: 'Overloaded' } } });
const refused = { status: 401, body: { error: { message: 'No such key.' } } };
const line = () => page.locator('#wait-line').textContent();
const text = (on = page) => on.evaluate(() => document.querySelector('#transcript').innerText);
const bubbles = () => page.locator('.bubble').allTextContents();
const isAsked = ({ said }) => said[0].startsWith('You write a summary');
const shot = (name, on = page) => picture(on, `compaction-${name}`);

/** Sends all but the last question; each is answered. */
async function talk() {
  for (const question of QUESTIONS.slice(0, 3)) {
    provider.says(ANSWER);
    await send(page, question);
    await page.locator('.turn', { hasText: question }).waitFor();
    await settled();
  }
}

/** A promise with its resolver. */
function later() {
  let come;
  return [new Promise((resolve) => (come = resolve)), (answer) => come(answer)];
}

test('a summary is a line while it is made, then collapsed in its place, also after a reload', async () => {
  await talk();
  const [summary, comes] = later();
  provider.says(summary, 'Lisbon, then.');
  await send(page, QUESTIONS[3]);
  await shows(RUNNING);
  assert.equal(await page.locator('#banner').isVisible(), false);
  assert.deepEqual(await bubbles(), QUESTIONS, 'everything older stays');
  await shot('running');
  comes(SUMMARY);
  await shows('Lisbon, then.');
  await settled();
  assert.ok(!(await text()).includes('summarizing'));
  const fold = page.locator('.compaction');
  assert.equal(await fold.count(), 1);
  assert.equal(await fold.locator('summary').textContent(), SUMMARIZED);
  assert.equal(await fold.locator('.thought').isVisible(), false);
  const { said } = provider.requests.at(-1);
  assert.ok(said[0].includes(SUMMARY) && said[0].includes(QUESTIONS[3]), 'the model is sent the summary and the question');
  assert.deepEqual(provider.requests.filter(isAsked).length, 1);

  const live = await text();
  await page.reload();
  await settled();
  assert.equal(await text(), live, 'a reload shows the same');
  assert.deepEqual(await bubbles(), QUESTIONS);
  await fold.locator('summary').click();
  assert.equal(await fold.locator('.thought').innerText(), SUMMARY, 'as text');
  await shot('fold');
  for (const [name, options] of [
    ['dark', { colorScheme: 'dark' }],
    ['phone', { viewport: { width: 390, height: 760 } }],
    ['phone-dark', { viewport: { width: 390, height: 760 }, colorScheme: 'dark' }],
  ]) {
    const other = await openPage(browser, page.url(), options);
    await settled(other);
    await other.locator('.compaction summary').click();
    assert.equal(await other.locator('.thought').innerText(), SUMMARY);
    const isWider = await other.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    assert.equal(isWider, false, 'nothing is wider than the page');
    await shot(name, other);
    await other.context().close();
  }
  assert.deepEqual(page.wrongs, []);
});

test('a summary that somebody asked for is a turn without a message, also after a reload', async () => {
  await talk();
  const [summary, comes] = later();
  provider.says(summary, 'Lisbon, then.');
  const id = /c\/(.+)$/.exec(new URL(page.url()).hash)[1];
  const compact = await fetch(`${stage.server.url}/conversations/${id}/compact`, { method: 'POST' });
  assert.equal(compact.status, 200, await compact.text());
  await shows('Summarizing earlier messages…');
  assert.ok(!(await text()).includes('too long'));
  comes(SUMMARY);
  await shows(SUMMARIZED);
  await settled();
  assert.deepEqual(await bubbles(), QUESTIONS.slice(0, 3));
  const live = await text();
  await shot('requested');
  await page.reload();
  await settled();
  assert.equal(await text(), live, 'a reload shows the same');
  await send(page, QUESTIONS[3]);
  await shows('Lisbon, then.');
  assert.ok(provider.requests.at(-1).said[0].includes(SUMMARY));
  assert.deepEqual(page.wrongs, []);
});

test('a summary that somebody asked for and that failed is made again', async () => {
  await talk();
  provider.says(refused);
  const id = /c\/(.+)$/.exec(new URL(page.url()).hash)[1];
  await fetch(`${stage.server.url}/conversations/${id}/compact`, { method: 'POST' });
  await shows('the conversation could not be summarized');
  await settled();
  const [summary, comes] = later();
  provider.says(summary, 'Lisbon, then.');
  await page.getByRole('button', { name: 'Try again', exact: true }).click();
  await shows('Summarizing earlier messages…');
  const running = await text();
  assert.ok(!running.includes('could not be summarized'), 'what failed is folded');
  await page.reload();
  await shows('Summarizing earlier messages…');
  assert.equal(await text(), running, 'a reload shows the same');
  comes(SUMMARY);
  await shows(SUMMARIZED);
  await settled();
  assert.equal(provider.requests.filter(isAsked).length, 2);
  const live = await text();
  await page.reload();
  await settled();
  assert.equal(await text(), live);
  await send(page, QUESTIONS[3]);
  await shows('Lisbon, then.');
  assert.ok(provider.requests.at(-1).said[0].includes(SUMMARY));
  assert.deepEqual(page.wrongs, []);
});

test('a wait for a summary says so, survives a reload, and can be skipped', async () => {
  await talk();
  provider.says(busy(600), SUMMARY, busy(600), 'Lisbon, then.');
  await send(page, QUESTIONS[3]);
  await page.locator('#banner').waitFor();
  assert.match(await line(), /^Server overloaded, retrying the summary in \d+ min \d\d s$/);
  await shows(RUNNING);
  await shot('wait');
  await page.reload();
  await shows(RUNNING);
  await page.waitForFunction(() => /retrying the summary in/.test(document.querySelector('#wait-line').textContent));
  await page.locator('#retry-now').click();
  await shows(SUMMARIZED);
  // The answer has waits of its own.
  await page.waitForFunction(() => /^Server overloaded, retrying (in|now)/.test(document.querySelector('#wait-line').textContent));
  await page.locator('#retry-now').click();
  await shows('Lisbon, then.');
  await settled();
  assert.equal(await page.locator('.compaction').count(), 1);
  assert.deepEqual(page.wrongs, []);
});

test('a summary that fails or is stopped is reported once', async () => {
  await talk();
  provider.says(refused);
  await send(page, QUESTIONS[3]);
  await shows('summarizing it failed');
  await settled();
  assert.equal((await text()).match(/No such key/g).length, 1);
  assert.ok(!(await text()).includes(RUNNING));
  const failed = await text();
  await page.reload();
  await shows('summarizing it failed');
  await settled();
  assert.equal(await text(), failed);

  provider.says(busy(600));
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.waitForFunction(() => /retrying the summary in/.test(document.querySelector('#wait-line').textContent));
  await page.locator('#retry-cancel').click();
  await shows('Stopped.');
  await settled();
  assert.ok(!(await text()).includes(RUNNING));
  assert.equal(await page.locator('.compaction').count(), 0);
  await page.reload();
  await shows('Stopped.');
  await page.getByRole('button', { name: 'Try again', exact: true }).waitFor();
});

test('before an overflow nothing is refused, and a failed summary is skipped', async () => {
  provider.limit = 2 * LIMIT;
  await page.locator('#model').selectOption('sim/known');
  await talk();
  const [summary, comes] = later();
  provider.says(summary, 'Lisbon, then.');
  await send(page, QUESTIONS[3]);
  await shows('The conversation is nearly too long for the model: summarizing earlier messages…');
  comes({ status: 529, body: { error: { message: 'Overloaded' } } });
  await shows('Lisbon, then.');
  await settled();
  const note = page.locator('.note', { hasText: 'Earlier messages could not be summarized' });
  assert.match(await note.textContent(), /\(HTTP 529: .*Overloaded.*\)\. All of them are sent to the model\.$/);
  assert.equal(await page.locator('.note', { hasText: 'summarizing' }).count(), 0);
  assert.equal(await page.locator('#banner').isVisible(), false);
});

test('a server killed while a summary is made requests it again, and shows one', async () => {
  await talk();
  const [never] = later();
  provider.says(never, SUMMARY, 'Lisbon, then.');
  await send(page, QUESTIONS[3]);
  await shows(RUNNING);
  await page.waitForFunction(() => document.querySelector('.turn[aria-busy=true]'));
  await stage.crash();
  await shows('Lisbon, then.');
  await settled();
  assert.equal(await page.locator('.compaction').count(), 1);
  assert.ok(!(await text()).includes(RUNNING));
  const live = await text();
  await page.reload();
  await settled();
  assert.equal(await text(), live);
});

test('a summary stays if a later answer is repeated, and is superseded with an edited message', async () => {
  await talk();
  provider.says(SUMMARY, refused);
  await send(page, QUESTIONS[3]);
  await shows('No such key');
  await settled();
  provider.says('Lisbon, then.');
  await page.getByRole('button', { name: 'Try again' }).click();
  await shows('Lisbon, then.');
  await settled();
  const stays = async () => {
    assert.equal(await page.locator('.compaction').count(), 1);
    assert.equal(await page.locator('.replaced .error').count(), 1, 'what failed is folded');
    assert.equal(await page.locator('.replaced .compaction').count(), 0);
  };
  await stays();
  assert.equal(provider.requests.filter(isAsked).length, 1);
  assert.ok(provider.requests.at(-1).said[0].includes(SUMMARY));
  await page.reload();
  await settled();
  await stays();

  provider.says('No, Porto.');
  await page.locator('.edit').first().click();
  await page.locator('.revision textarea').fill('And Porto?');
  await page.locator('.revision .strong').click();
  await shows('No, Porto.');
  await settled();
  assert.deepEqual(provider.requests.at(-1).said, ['And Porto?'], 'the model is sent neither what was replaced nor its summary');
  assert.equal(await page.locator('.replaced .compaction').count(), 1);
  const live = await text();
  await page.reload();
  await settled();
  assert.equal(await text(), live);
});
