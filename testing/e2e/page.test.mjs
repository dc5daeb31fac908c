// The page against the server itself: `EVERTURN_BIN=<binary> node --test page.test.mjs`.
// Without a configured provider the server offers `demo/flaky`, which is refused twice (waits of 5 s and 10 s) and then
// answers.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { startServer } from './support/binary.mjs';
import { answerText, launch, openPage, send } from './support/browser.mjs';

const PROMPT = 'Tell me about the storm.';
const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };
const FIRST_WAIT_S = 5;

let server;
let browser;
let page;

before(async () => {
  server = await startServer();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});
afterEach(async () => {
  await page?.context().close();
});

/** Opens the page and waits until it is connected. */
async function open(options) {
  page = await openPage(browser, `${server.url}/`, options);
  await page.locator('#model option').first().waitFor({ state: 'attached' });
  assert.match(await page.locator('#model').inputValue(), /^demo\/flaky$/);
}

const banner = () => page.locator('#banner');
const isRetry = (number) =>
  page.waitForFunction(
    (n) => document.querySelector('#wait-note').textContent.startsWith(`Retry ${n}`) && !document.querySelector('#banner').hidden,
    number,
  );
const secondsLeft = async () => Number(/retrying in (\d+) s/.exec(await page.locator('#wait-line').textContent())?.[1]);
const secondsBelow = (seconds) =>
  page.waitForFunction((most) => {
    const left = /retrying in (\d+) s/.exec(document.querySelector('#wait-line').textContent);
    return left && Number(left[1]) < most;
  }, seconds);
const sealed = () => page.waitForFunction(() => document.querySelector('.turn:last-child, .turn:has(+ .again)')?.ariaBusy === 'false');
const conversationId = async () => {
  await page.waitForFunction(() => location.hash.startsWith('#/c/'));
  return new URL(page.url()).hash.slice(4);
};
const storedText = async (role) => {
  const response = await fetch(`${server.url}/conversations/${await conversationId()}`);
  const { chunks } = await response.json();
  return chunks.filter((each) => each.role === role && each.chunk.type === 'text').map((each) => each.chunk.text);
};
/** Only words, because the page renders Markdown's marks, such as list numbers, in another form. */
const plain = (text) => text.replaceAll(/^ *\d+[.)] /gm, '').replaceAll(/[^\p{L}\p{N}]+/gu, ' ').trim();
const isNotWide = async () => {
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= PHONE.viewport.width, `the page is ${width} px wide`);
};

test('the banner counts down, and Retry now skips the wait', async () => {
  await open();
  const begun = Date.now();
  await send(page, PROMPT);
  await isRetry(1);
  assert.match(await page.locator('#wait-line').textContent(), /^\S.*, retrying in \d+ s$/);
  const left = await secondsLeft();
  assert.ok(left > 0 && left <= FIRST_WAIT_S, `${left} s left`);
  await secondsBelow(left);
  await page.locator('#banner summary').click();
  assert.notEqual((await page.locator('#wait-message').textContent()).trim(), '');

  await page.locator('#retry-now').click();
  await isRetry(2);
  assert.ok((await secondsLeft()) > FIRST_WAIT_S, 'the second wait is the longer one');
  await page.locator('#retry-now').click();
  await page.locator('.answer').waitFor();
  assert.ok(Date.now() - begun < 15_000, 'the two waits are 15 s long when they are not skipped');
  assert.equal(await banner().isHidden(), true);

  await sealed();
  assert.equal(plain(await answerText(page)), plain((await storedText('assistant')).join('\n')));
  assert.match(await page.locator('.turn .foot').textContent(), /2 retries/);
  assert.equal(await page.locator('.attempts li').count(), 0, 'folded, they are not asked for');
  await page.locator('.attempts summary').click();
  await page.locator('.attempts li').nth(1).waitFor();
  assert.match(await page.locator('.attempts li').first().textContent(), /demo\/flaky .* waited 5.0 s/);
  assert.equal(await page.locator('.attempts li').count(), 2);
  assert.equal(await page.locator('#stop').isHidden(), true);
  assert.deepEqual(page.wrongs, []);
});

test('*Give up* seals the turn and offers to try again', async () => {
  await open();
  await send(page, PROMPT);
  await isRetry(1);
  await page.locator('#retry-cancel').click();
  await sealed();
  assert.equal(await banner().isHidden(), true);
  assert.equal(await page.locator('.turn .note').textContent(), 'Stopped.');
  assert.equal(await page.locator('.error').count(), 0);
  const response = await fetch(`${server.url}/conversations/${await conversationId()}/status`);
  assert.equal((await response.json()).isActive, false);

  await page.locator('.again button').click();
  await isRetry(1);
  assert.deepEqual(await page.locator('.bubble').allTextContents(), [PROMPT]);
  await page.keyboard.press('Escape');
  await page.locator('dialog.ask button', { hasText: 'Stop' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.turn[aria-busy=false]').length === 2);
  assert.deepEqual(await page.locator('.bubble').allTextContents(), [PROMPT]);
  assert.deepEqual(page.wrongs, []);
});

test('a reload in the middle of a turn shows the same, once', async () => {
  await open();
  await send(page, PROMPT);
  await isRetry(1);
  const left = await secondsLeft();
  await page.reload();
  await isRetry(1);
  assert.ok((await secondsLeft()) <= left, 'the countdown goes on where it was');
  assert.deepEqual(await page.locator('.bubble').allTextContents(), [PROMPT]);

  await page.locator('#retry-now').click();
  await isRetry(2);
  await page.locator('#retry-now').click();
  await page.locator('.answer').waitFor();
  await page.reload();
  await page.locator('.answer').waitFor();
  await page.waitForFunction(() => !document.querySelector('.turn[aria-busy=true]') && document.querySelector('#stop').hidden);
  const shown = await answerText(page);
  assert.deepEqual(await page.locator('.bubble').allTextContents(), [PROMPT]);
  assert.equal(plain(shown), plain((await storedText('assistant')).join('\n')));

  await page.reload();
  await page.locator('.history .answer').waitFor();
  assert.equal(await answerText(page), shown);
  assert.deepEqual(await page.locator('.bubble').allTextContents(), [PROMPT]);
  assert.deepEqual(page.wrongs, []);
});

test('a message sent meanwhile waits for the turn and can be removed', async () => {
  await open();
  await send(page, PROMPT);
  await isRetry(1);
  await send(page, 'And now the calm.');
  await page.locator('#queue li', { hasText: 'And now the calm.' }).waitFor();
  await page.locator('#queue li button').click();
  await page.locator('#queue li').waitFor({ state: 'detached' });
  await page.locator('#stop').click();
  await sealed();
  assert.deepEqual(await page.locator('.bubble').allTextContents(), [PROMPT]);
  assert.deepEqual(page.wrongs, []);
});

test('the page fits a phone', async () => {
  await open(PHONE);
  await page.locator('#sample').waitFor();
  await isNotWide();
  await page.locator('#sample').tap();
  await isRetry(1);
  await isNotWide();
  await page.locator('#banner summary').tap();
  await isNotWide();
  await page.locator('#retry-now').tap();
  await isRetry(2);
  await page.locator('#retry-now').tap();
  await sealed();
  await isNotWide();
  await page.locator('#menu').tap();
  await page.locator('#list a[aria-current=page]').waitFor();
  await isNotWide();
  assert.deepEqual(page.wrongs, []);
});

test('the sample is answered with the help of a tool, and reads the same from history', async () => {
  await open();
  await page.locator('#sample').click();
  await isRetry(1);
  await page.locator('#retry-now').click();
  await isRetry(2);
  await page.locator('#retry-now').click();
  await sealed();
  assert.match(await page.locator('.tool .state').textContent(), /^done/);
  const [shown, tool] = [await answerText(page), await page.locator('.tool-body').textContent()];
  await page.reload();
  await page.locator('.history .answer').waitFor();
  assert.equal(await answerText(page), shown);
  assert.equal(await page.locator('.tool-body').textContent(), tool);
  assert.deepEqual(page.wrongs, []);
});

test('a message that is queued before the dice are rolled joins the turn, and both are answered', async () => {
  await open();
  await page.locator('#sample').click();
  await isRetry(1);
  await send(page, 'Is it raining?');
  await page.locator('#queue-hint').waitFor();
  await page.locator('#retry-now').click();
  await isRetry(2);
  await page.locator('#retry-now').click();
  await page.locator('.steering .joined').waitFor();
  await sealed();
  const answer = /The dice were rolled, and the answer is .*"Is it raining\?" joined this turn/s;
  assert.match(await answerText(page), answer);
  assert.equal(await page.locator('.turn').count(), 1);
  await page.reload();
  await page.locator('.history .steering .joined').waitFor();
  assert.match(await answerText(page), answer);
  assert.deepEqual(page.wrongs, []);
});

test('a server with a token admits clients that have it', async () => {
  const guarded = await startServer([], { EVERTURN_TOKEN: 'let-me-in' });
  try {
    page = await openPage(browser, `${guarded.url}/`);
    await page.locator('#token-field').fill('let-me-in');
    await page.locator('#token button').click();
    await page.locator('#model option').first().waitFor({ state: 'attached' });
    await send(page, PROMPT);
    await isRetry(1);
    await page.locator('#retry-cancel').click();
    await sealed();
  } finally {
    await page?.context().close();
    await guarded.stop();
  }
});

test('viewers learn at once that somebody skipped the wait, and can still cancel', async () => {
  await open();
  await send(page, PROMPT);
  await isRetry(1);
  const other = await openPage(browser, page.url());
  try {
    await other.locator('#retry-now').click();
    await isRetry(2);
    await other.locator('#retry-cancel').click();
    await sealed();
    assert.equal(await banner().isHidden(), true);
    assert.equal(await page.locator('.turn .note').textContent(), 'Stopped.');
    assert.match(await page.locator('.turn .foot').textContent(), /1 retry$/);
    assert.deepEqual([page.wrongs, other.wrongs], [[], []]);
  } finally {
    await other.context().close();
  }
});
