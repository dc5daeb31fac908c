// Earlier messages answered again or edited on the page, and a waiting turn moved to another model, with the real
// server and a provider on loopback.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { openPage, send } from './support/browser.mjs';
import { picture } from './support/picture.mjs';
import { served } from './support/served.mjs';

const config = (url) => `
[retry]
schedule = "exponential"
base_ms = 45000
jitter = 0.0

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one", "two", "three"]

[[route]]
name = "both"
targets = ["sim/one", "sim/two"]
`;

const stage = served(config, 4);
const { settled, shows } = stage;
let browser;
let provider;
let server;
let page;
beforeEach(() => ({ browser, provider, server, page } = stage));

/** The visible messages and answers without unfolding anything, one per line. */
const seen = (on = page) =>
  on.evaluate(() =>
    [...document.querySelectorAll('.bubble, .answer, .replaced > summary')]
      .filter((node) => node.checkVisibility())
      .map((node) => node.innerText.trim()),
  );
const folded = (on = page) =>
  on.locator('.replaced .bubble, .replaced .answer').evaluateAll((nodes) => nodes.map((node) => node.textContent.trim()));
const asked = () => provider.requests.at(-1).said;

async function say(text, answer) {
  provider.says(answer);
  await send(page, text);
  await shows(answer);
  await settled();
}

/** Checks that they are the same after a reload. */
async function isSame() {
  const [before, hidden] = [await seen(), await folded()];
  await page.reload();
  await page.locator('.history .turn').first().waitFor();
  await settled();
  assert.deepEqual(await seen(), before);
  assert.deepEqual(await folded(), hidden);
  assert.deepEqual(page.wrongs, []);
}

const regenerate = (nth) => page.locator('.offers > button', { hasText: 'Regenerate' }).nth(nth).click();

test('an answer in the middle is regenerated, with another model too, and every version can be read', async () => {
  await say('Q1', 'A1');
  await say('Q2', 'A2');
  provider.says('B1');
  await regenerate(0);
  await shows('B1');
  await settled();
  assert.deepEqual(asked(), ['Q1']);
  assert.deepEqual(await seen(), ['Q1', 'Earlier version', 'B1']);
  assert.deepEqual(await folded(), ['A1', 'Q2', 'A2']);
  await isSame();

  provider.says('C1');
  await page.locator('.choice-of-model:visible').last().selectOption('sim/two');
  await shows('C1');
  await settled();
  const { model, said } = provider.requests.at(-1);
  assert.deepEqual({ model, said }, { model: 'two', said: ['Q1'] });
  assert.deepEqual((await seen()).filter((line) => line !== 'Earlier version'), ['Q1', 'C1']);
  await isSame();

  await page.locator('.replaced > summary').first().click();
  await page.locator('.replaced .answer', { hasText: 'A2' }).waitFor({ state: 'visible' });
  await picture(page, 'branch');
  await page.locator('.replaced > summary').first().click();
  await say('Q3', 'C3');
  assert.deepEqual(asked(), ['Q1', 'C1', 'Q3']);
  await isSame();
});

test('a message is edited where it stands, and an edit can be cancelled', async () => {
  await say('Q1', 'A1');
  await say('Q2', 'A2');
  const edit = page.locator('.edit').first();
  await edit.click();
  await page.locator('.revision textarea').fill('no');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.revision').count(), 0);
  await edit.click();
  assert.equal(await page.locator('.revision textarea').inputValue(), 'Q1');
  await page.locator('.revision textarea').fill('Q1, better');
  await picture(page, 'edit');
  provider.says('B1');
  await page.locator('.revision .strong').click();
  await shows('B1');
  await settled();
  assert.deepEqual(asked(), ['Q1, better']);
  assert.deepEqual(await seen(), ['Earlier version', 'Q1, better', 'B1']);
  assert.deepEqual(await folded(), ['Q1', 'A1', 'Q2', 'A2']);
  await isSame();
  assert.equal(await page.locator('.steering').count(), 0, 'it is no message that joined an answer');
  await say('Q2', 'B2');
  assert.deepEqual(asked(), ['Q1, better', 'B1', 'Q2']);
  await isSame();
});

test('Enter sends an edited message, and Shift+Enter is a new line', async () => {
  await say('Q1', 'A1');
  await page.locator('.edit').click();
  provider.says('B1');
  await page.locator('.revision textarea').press('End');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('and more');
  await page.keyboard.press('Enter');
  await shows('B1');
  assert.deepEqual(asked(), ['Q1\nand more']);
});

test('another viewer sees the same as it happens', async () => {
  await say('Q1', 'A1');
  await say('Q2', 'A2');
  const other = await openPage(browser, page.url());
  await shows('A2', other);
  let begin;
  provider.says(new Promise((resolve) => (begin = resolve)));
  await regenerate(0);
  for (const viewer of [page, other]) {
    await viewer.waitForFunction(() => document.querySelector('.replaced .bubble') && document.querySelector('[aria-busy=true]'));
    assert.deepEqual(await seen(viewer), ['Q1', 'Earlier version']);
    assert.equal(await viewer.locator('.edit:visible, .offers:visible').count(), 0, 'nothing is offered while a turn runs');
  }
  begin('B1');
  for (const viewer of [page, other]) {
    await shows('B1', viewer);
    await settled(viewer);
    assert.deepEqual(await seen(viewer), ['Q1', 'Earlier version', 'B1']);
  }
  assert.deepEqual([...page.wrongs, ...other.wrongs], []);
  await other.context().close();
});

test('a turn stopped before its first word replaces nothing', async () => {
  await say('Q1', 'A1');
  await say('Q2', 'A2');
  provider.says(new Promise(() => {}));
  await regenerate(0);
  await page.waitForFunction(() => document.querySelector('.replaced .bubble'));
  await page.locator('#stop').click();
  await page.waitForFunction(() => !document.querySelector('.replaced'));
  await settled();
  assert.deepEqual(await seen(), ['Q1', 'A1', 'Q2', 'A2']);
  await isSame();
});

test('a waiting turn continues at once with the chosen model', async () => {
  provider.says(null, 'From two');
  await send(page, 'Q1');
  await page.locator('#retry-with').waitFor({ state: 'visible' });
  await picture(page, 'waits');
  await page.locator('#retry-with').selectOption('sim/two');
  await shows('From two');
  await settled();
  assert.deepEqual(provider.requests.map(({ model }) => model), ['one', 'two']);
  assert.equal(await page.locator('#banner').isHidden(), true);
  assert.equal(await page.locator('.again').count(), 0);
  assert.deepEqual(await page.locator('.bubble').allTextContents(), ['Q1']);
  await picture(page, 'moved');
  await isSame();
});

test('a turn on a route moves to the chosen target', async () => {
  await page.locator('#model').selectOption('route/both');
  provider.says(null, null, 'From two');
  await send(page, 'Q1');
  await page.waitForFunction(() => document.querySelector('#wait-note').textContent.startsWith('Retry 2'));
  await page.locator('#retry-with').selectOption('sim/two');
  await shows('From two');
  await settled();
  assert.equal(provider.requests.at(-1).model, 'two');
  assert.equal(await page.locator('.turn').count(), 1, 'it is the same turn');
});

test('below a turn that failed, one button asks again', async () => {
  const offers = async () => {
    const texts = await page.locator('.offers button:visible, .again button:visible').allInnerTexts();
    assert.equal(texts.filter((text) => text === 'Copy').length, 1, 'of the answer');
    return texts.filter((text) => text !== 'Copy');
  };
  const refused = { status: 401, body: { error: { message: 'Who are you?' } } };
  await say('Q1', 'A1');
  assert.deepEqual(await offers(), ['Regenerate']);
  provider.says(refused);
  await send(page, 'Q2');
  await page.locator('.again').waitFor();
  await settled();
  assert.deepEqual(await offers(), ['Regenerate', 'Try again']);
  assert.equal(await page.locator('.choice-of-model:visible').count(), 2);
  await page.reload();
  await page.locator('.history .turn').first().waitFor();
  await page.locator('.again').waitFor();
  await settled();
  assert.deepEqual(await offers(), ['Regenerate', 'Try again']);
  provider.says('A2');
  await page.getByRole('button', { name: 'Try again' }).click();
  await shows('A2');
  await settled();
  assert.equal(await page.locator('.offers .regenerate:visible').count(), 4, 'two below each answer');
});

test('waits for the network are counted without a maximum', async () => {
  await say('Q1', 'A1');
  await provider.stop();
  await send(page, 'Q2');
  for (const nth of [1, 2, 3]) {
    await page.waitForFunction((start) => document.querySelector('#wait-note').textContent.startsWith(start), `Retry ${nth}`);
    assert.match(await page.locator('#wait-note').textContent(), new RegExp(`^Retry ${nth}( ·|$)`));
    await page.locator('#retry-now').click();
  }
});

test('an edited message keeps its text files, which are not in the field', async () => {
  await page.locator('#attach-file').setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('One.') });
  await page.locator('#files li').waitFor();
  await say('Q1', 'A1');
  await page.locator('.edit').click();
  const field = page.locator('.revision textarea');
  assert.equal(await field.inputValue(), 'Q1');
  await field.fill('Q2');
  provider.says('A2');
  await field.press('Enter');
  await shows('A2');
  await settled();
  assert.deepEqual(asked(), ['Q2\n\n<file name="notes.txt">\nOne.\n</file>']);
  assert.equal(await page.locator('.turn:not(.replaced *) .file summary:visible').textContent(), 'notes.txt');
});
