// A long wait for people who look away: the title of the tab, notifications, times.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stage } from './support/stage.mjs';

const on = stage();
const HOUR = 3_600_000;

const title = (pattern) => on.until((source) => new RegExp(source).test(document.title), pattern.source);
const note = () => on.page.locator('#wait-note').textContent();

/** Makes the browser record notifications instead of showing them. */
async function notifications(permission) {
  await on.page.evaluate((granted) => {
    window.shown = [];
    window.Notification = class {
      static permission = 'default';
      static requestPermission = async () => (window.Notification.permission = granted);
      constructor(head, { body }) {
        window.shown.push(`${head}: ${body}`);
      }
    };
  }, permission);
}

const shown = () => on.page.evaluate(() => window.shown);
const retry = (delayMs, more = {}) => ({ type: 'provider-retry', attempt: 0, delayMs, message: 'm', code: '429', ...more });

test('the title of the tab counts down', async () => {
  await on.open();
  const turn = await on.begin('What now?');
  await title(/^What now\? · Everturn$/);
  turn.tell(retry(90_000));
  await title(/^1 min (30|2\d) s · What now\? · Everturn$/);
  turn.tell(retry(30 * HOUR));
  await title(/^\w{3},? \d{1,2}:\d\d.* · What now\? · Everturn$/);
  turn.say('There.');
  await title(/^What now\? · Everturn$/);
});

test('a long wait shows when it ends and when the turn gives up', async () => {
  await on.open();
  const turn = await on.begin();
  turn.tell(retry(60_000, { budgetLeftMs: 30_000 }));
  await on.line('Rate limited, retrying in 1 min 00 s');
  assert.equal(await note(), 'Retry 1', 'a short one does not');
  turn.tell(retry(600_000, { budgetLeftMs: HOUR }));
  await on.until(() => document.querySelector('#wait-note').textContent.includes('gives up'));
  assert.match(await note(), /^Retry 1 · next at \d{1,2}:\d\d( [AP]M)? · gives up at \d{1,2}:\d\d( [AP]M)?$/);
  assert.deepEqual(on.page.wrongs, []);
});

test('a notification on request appears once when the wait is over', async () => {
  await on.open();
  await notifications('granted');
  const turn = await on.begin();
  turn.tell(retry(5000));
  await on.until(() => !document.querySelector('#banner').hidden);
  assert.equal(await on.page.locator('#notify').isHidden(), true, 'not for a short one');
  turn.tell(retry(600_000));
  await on.page.locator('#notify').click();
  await on.page.locator('#notify[aria-pressed=true]', { hasText: 'You will be notified' }).waitFor();
  turn.tell({ type: 'status', status: 'active', retry: { ...retry(600_000), phase: 'asking' } }, retry(700_000, { attempt: 1 }));
  await on.line('Rate limited, retrying in 11 min 40 s');
  assert.deepEqual(await shown(), [], 'it still waits');
  turn.tell({ type: 'retry-ended', attempts: 2, outcome: 'recovered' });
  turn.say('There.');
  await on.until(() => window.shown.length > 0);
  turn.tell(retry(600_000));
  await on.page.locator('#notify[aria-pressed=false]').waitFor();
  turn.tell({ type: 'error', message: 'HTTP 429', code: '429' });
  turn.end('error');
  await on.sealed();
  assert.deepEqual(await shown(), ['What now?: The provider answers again.']);
});

test('a failure is notified too, and a denied permission is reported', async () => {
  await on.open();
  await notifications('granted');
  const turn = await on.begin();
  turn.tell(retry(600_000));
  await on.page.locator('#notify').click();
  await on.page.locator('#notify[aria-pressed=true]').waitFor();
  turn.tell({ type: 'error', message: 'HTTP 429', code: '429' });
  turn.end('error');
  await on.until(() => window.shown.length > 0);
  assert.deepEqual(await shown(), ['What now?: The provider could not be reached. The turn gave up.']);

  await notifications('denied');
  const second = await on.begin();
  second.tell(retry(600_000));
  await on.page.locator('#notify').click();
  await on.page.locator('.toast', { hasText: 'does not allow notifications' }).waitFor();
  second.tell({ type: 'retry-ended', attempts: 1, outcome: 'cancelled' });
  second.end('aborted');
  await on.until(() => document.querySelector('#banner').hidden);
  assert.deepEqual(await shown(), []);
});

test('a notification comes also for a conversation that was left', async () => {
  on.server.conversation().begin('Away').end();
  await on.open();
  await notifications('granted');
  const turn = await on.begin('Home');
  turn.tell(retry(5000));
  turn.say('An earlier wait is over.');
  turn.tell(retry(600_000));
  await on.page.locator('#notify').click();
  await on.page.locator('#notify[aria-pressed=true]').waitFor();
  const go = async (text) => {
    await on.page.locator('#list a', { hasText: text }).click();
    await on.until((wanted) => document.querySelector('.bubble')?.textContent === wanted, text);
  };
  await go('Away');
  await go('Home');
  await on.page.locator('#notify[aria-pressed=true]').waitFor();
  await go('Away');
  turn.end();
  await on.until(() => window.shown.length > 0);
  assert.deepEqual(await shown(), ['Home: The turn is over.']);
});
