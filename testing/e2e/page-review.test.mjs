// Reviews, and approvals that no real tool here would need, with a scripted server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stage } from './support/stage.mjs';

const on = stage();
const { begin, shows, until } = on;

const STEP = 's-1';
const about = (type, toolCallId, more = {}) => ({ type, stepId: STEP, toolCallId, toolName: 'write_file', ...more });
const call = (toolCallId, input = {}) => about('tool-call', toolCallId, { input });
const asks = (toolCallId, more) => about('approval-requested', toolCallId, { input: {}, ...more });
const lines = () => on.page.locator('.permission > p').allTextContents();

test('a review is a line with its outcome', async () => {
  await on.open();
  const turn = await begin();
  for (const id of ['a', 'b', 'c', 'd', 'e']) turn.tell(call(id), about('review-started', id));
  await until(() => document.querySelectorAll('.review.working').length === 5);
  assert.equal(await on.page.locator('.tool .state').first().textContent(), 'under review');
  const completed = (id, more) => about('review-completed', id, { attemptCount: 1, ...more });
  turn.tell(
    completed('a', { verdict: 'allowed', riskLevel: 'low', userAuthorization: 'high' }),
    completed('b', { verdict: 'denied', riskLevel: 'high', rationale: 'It deletes\nall.' }),
    completed('c', { verdict: 'failed' }),
    asks('c', { reason: 'the automatic review came to no decision: no answer' }),
    completed('d', { verdict: 'timed-out' }),
    completed('e', { verdict: 'a-new-word' }),
  );
  await until(() => document.querySelectorAll('.review.working').length === 0);
  assert.deepEqual(await lines(), [
    'Allowed by review (low risk)',
    'Denied by review (high risk): It deletes all.',
    'Review failed',
    'Review took too long',
    'Review: a-new-word',
  ]);
  const why = await on.page.locator('.approval-why').textContent();
  assert.equal(why, 'the automatic review came to no decision: no answer');
  turn.end();
  await on.sealed();
  assert.equal(await on.page.locator('.approval').count(), 0);
  assert.deepEqual(on.page.wrongs, []);
});

test('arguments are shown as text, without hidden characters', async () => {
  await on.open();
  const turn = await begin();
  const input = {
    path: 'user\u202etxt.exe',
    text: 'one\n<b>two</b>\n\ttab\u0007',
    emoji: '👩\u200d🚀 pay\u200bpal',
    nested: { list: [1, { deep: 'first\nsecond' }, 'x'.repeat(80)], none: null },
    empty: ' ',
  };
  turn.tell(call('a', input), asks('a', { toolName: 'write\u202e_file', input, reason: '<i>why</i>\u2066' }));
  await on.page.locator('.approval').waitFor();
  const values = await on.page.locator('.approval-input pre').allTextContents();
  assert.deepEqual(values, [
    'user<U+202E>txt.exe',
    'one\n<b>two</b>\n\ttab<U+0007>',
    '👩\u200d🚀 pay<U+200B>pal',
    '1',
    '{"deep":"first\\nsecond"}',
    'x'.repeat(80),
    'null',
    '" "',
  ]);
  assert.equal(await on.page.locator('.approval-why').textContent(), '<i>why</i><U+2066>');
  assert.equal(await on.page.locator('.always').textContent(), 'Allow write<U+202E>_file in this conversation');
  assert.equal(await on.page.locator('.approval b, .approval i').count(), 0);
});

test('long arguments scroll, and their truncation is stated', async () => {
  await on.open();
  const turn = await begin();
  const input = { text: 'line\n'.repeat(5000), list: Array.from({ length: 120 }, (_, n) => `entry ${n}`) };
  turn.tell(call('a', input), asks('a', { input }));
  const box = on.page.locator('.approval-input');
  await box.waitFor();
  assert.ok(await box.evaluate((node) => node.scrollHeight > node.clientHeight && node.clientHeight < 400));
  const text = await box.textContent();
  assert.match(text, /… and 5,000 more characters/);
  assert.match(text, /and 20 more/);
  assert.ok(await on.page.locator('.approval-choice button').first().isVisible());
});

test('the remaining time is counted down to its end', async () => {
  await on.open();
  const turn = await begin();
  const now = Date.now();
  turn.tell(call('a'), asks('a', { until: now + 65_000 }), call('b'), asks('b', { until: now + 9_000_000 }));
  const timer = (nth) => on.page.locator('.approval-timer').nth(nth);
  await timer(0).filter({ hasText: /^Denied in 1 min 0[0-5] s if nobody answers$/ }).waitFor();
  await timer(0).filter({ hasText: /^Denied in \d\d s if nobody answers$/ }).waitFor();
  assert.match(await timer(1).textContent(), /^Denied .*\d\d:\d\d.* if nobody answers$/);
  const resolved = (id, verdict) => about('approval-resolved', id, { verdict });
  turn.tell(resolved('a', 'timed-out'), resolved('b', 'cancelled'));
  await until(() => document.querySelectorAll('.approval').length === 0);
  assert.deepEqual(await lines(), ['Not answered in time', 'Not answered: the turn ended']);
});

test('a disappearing card does not lose the focus or take it from the message field', async () => {
  await on.open();
  const turn = await begin();
  turn.tell(call('a'), asks('a'), call('b'), asks('b'));
  await on.page.locator('.denial input').first().focus();
  turn.tell(about('approval-resolved', 'a', { verdict: 'allowed' }));
  await shows('Allowed');
  assert.equal(await on.page.evaluate(() => document.activeElement.id), 'prompt');
  turn.tell(about('approval-resolved', 'b', { verdict: 'denied', reason: 'elsewhere' }));
  await shows('Denied: elsewhere');
  assert.equal(await on.page.evaluate(() => document.activeElement.id), 'prompt');
});
