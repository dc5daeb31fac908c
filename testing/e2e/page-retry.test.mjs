// Retries, silences, and their buttons.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stage } from './support/stage.mjs';

const on = stage();
const OVERLOADED = 'HTTP 529: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded, try later"}}';
const RETRY = { attempt: 1, delayMs: 60_000, maxAttempts: 21, category: 'overloaded', code: '529', message: OVERLOADED };
const waits = (turn, fields) => turn.tell({ type: 'provider-retry', ...RETRY, target: 'demo/flaky', ...fields });
const asks = (turn, fields) =>
  turn.tell({ type: 'status', status: 'active', retry: { phase: 'asking', ...RETRY, ...fields } });
const silent = (turn, fields) =>
  turn.tell({ type: 'provider-silent', stepId: `${turn.id}#0`, silentMs: 40_000, alive: false, ...fields });
const hidden = (id) => on.until((wanted) => document.getElementById(wanted).hidden, id);
const focused = () => on.page.evaluate(() => document.activeElement?.id || document.activeElement?.tagName);

test('the banner says at once that the wait is over, and *Give up* still works', async () => {
  await on.open();
  const turn = await on.begin();
  waits(turn);
  await on.line('Server overloaded, retrying in 1 min 00 s');
  // Another viewer pressed "Retry now".
  asks(turn);
  await on.line('Asking again (retry 2 of 21)');
  assert.equal(await on.page.locator('#wait-reason').textContent(), 'Server overloaded (529): Overloaded, try later');
  assert.equal(await on.page.locator('#retry-now').isHidden(), true);
  const aborted = on.commanded('retry.abort');
  await on.page.locator('#retry-cancel').click();
  await aborted;
  await on.sealed();
  await hidden('banner');
  assert.deepEqual(on.page.wrongs, []);
});

for (const end of ['text-delta', 'reasoning-delta', 'tool-call', 'retry-ended', 'error', 'done']) {
  test(`the banner goes with ${end}`, async () => {
    await on.open();
    const turn = await on.begin();
    asks(turn);
    await on.line('Asking again (retry 2 of 21)');
    turn.tell({ type: end, delta: 'x', message: 'x', toolCallId: 'a', toolName: 'x', input: {}, attempts: 1, outcome: 'recovered', reason: 'stop' });
    await hidden('banner');
  });
}

test('a page opened meanwhile shows the retries from the status', async () => {
  const conversation = on.server.conversation();
  const turn = conversation.begin('Hello');
  conversation.retry = { phase: 'asking', ...RETRY };
  await on.open(`/#/c/${conversation.id}`);
  await on.line('Asking again (retry 2 of 21)');
  turn.say('There.');
  await hidden('banner');
  turn.tell({ type: 'step-complete', stepId: `${turn.id}#0` });
  conversation.retry = { phase: 'waiting', ...RETRY, attempt: 4, nextAt: Date.now() + 60_000 };
  await on.page.reload();
  await on.until(() => document.querySelector('#wait-note').textContent === 'Retry 5 of 21');
});

test('the banner shows the provider’s message and code, with the raw response collapsed', async () => {
  await on.open();
  const turn = await on.begin();
  const page = '<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>';
  for (const [message, code, reason] of [
    [OVERLOADED, '529', '529: Overloaded, try later'],
    ['HTTP 400: {"error":"model is \\"busy\\""}', '400', '400: model is "busy"'],
    ['HTTP 400: {"detail":[{"message":"too many"}]}', '400', '400: too many'],
    ['HTTP 429: {"error":{"message":"Slow\\u0020down","more":"cut he', '429', '429: Slow down'],
    [`HTTP 502: ${page}`, '502', '502 Bad Gateway'],
    ['connection reset by peer', undefined, 'connection reset by peer'],
  ]) {
    waits(turn, { message, code });
    await on.until((wanted) => document.querySelector('#wait-reason').textContent === wanted, reason);
    assert.equal(await on.page.locator('#wait-message').textContent(), message);
    assert.equal(await on.page.locator('#banner details').isHidden(), message === reason);
  }
});

test('a silent provider is shown and can be asked again, until something arrives', async () => {
  await on.open();
  const turn = await on.begin();
  silent(turn, { givesUpAt: new Date(2026, 0, 1, 12, 3).getTime() });
  const text = () => on.page.locator('#silence-line').textContent();
  await on.until(() => !document.querySelector('#silence').hidden);
  assert.match(await text(), /^No answer for 4\d s; gives up at 12:03/);
  const asked = on.commanded('retry.now');
  await on.page.locator('#ask-again').click();
  await asked;
  assert.equal(await on.page.locator('#ask-again').isDisabled(), true);
  assert.equal(await focused(), 'prompt');
  waits(turn, { attempt: 0, delayMs: 0 });
  asks(turn, { attempt: 0 });
  await hidden('silence');
  silent(turn, { alive: true });
  await on.until(() => !document.querySelector('#silence').hidden && !document.querySelector('#ask-again').disabled);
  assert.match(await text(), /^No answer for 4\d s \(the connection is open\)$/);
  turn.say('Here.');
  await hidden('silence');
  silent(turn);
  await on.until(() => document.querySelector('#silence-line').textContent.startsWith('Nothing more for 4'));
  assert.equal(await on.page.locator('#ask-again').isHidden(), true);
  turn.end();
  await hidden('silence');
});

test('Escape asks before it ends a wait', async () => {
  await on.open();
  const turn = await on.begin();
  waits(turn);
  await on.page.locator('#retry-now').waitFor();
  const question = on.page.locator('dialog.ask');
  await on.page.keyboard.press('Escape');
  await question.waitFor();
  assert.equal(await question.locator('h2').textContent(), 'Stop this turn?');
  await on.page.keyboard.press('Escape'); // twice by mistake
  await question.waitFor({ state: 'detached' });
  await on.page.keyboard.press('Escape');
  await question.waitFor();
  await on.page.keyboard.press('Enter');
  await question.waitFor({ state: 'detached' });
  assert.deepEqual(on.commands('chat.stop'), []);

  await on.page.keyboard.press('Escape');
  await question.locator('button', { hasText: 'Stop' }).click();
  await on.sealed();
  assert.equal(on.commands('chat.stop').length, 1);
});

test('Escape asks before it ends a silence, but stops an answer at once', async () => {
  await on.open();
  const turn = await on.begin();
  silent(turn);
  await on.page.locator('#silence').waitFor();
  await on.page.keyboard.press('Escape');
  const question = on.page.locator('dialog.ask');
  await question.waitFor();
  turn.say('Here it is.');
  await on.shows('Here it is.');
  await question.locator('button', { hasText: 'Keep waiting' }).click();
  assert.deepEqual(on.commands('chat.stop'), []);
  await on.page.keyboard.press('Escape');
  await on.sealed();
  assert.equal(await question.count(), 0);
  assert.equal(on.commands('chat.stop').length, 1);
});

test('an answer to the question about one turn does not stop the next', async () => {
  await on.open();
  const turn = await on.begin();
  waits(turn);
  await on.page.locator('#retry-now').waitFor();
  await on.page.keyboard.press('Escape');
  await on.page.locator('dialog.ask').waitFor();
  turn.end();
  turn.conversation.begin('The next one');
  await on.until(() => document.querySelectorAll('.bubble').length === 2);
  await on.page.locator('dialog.ask button', { hasText: 'Stop' }).click();
  await on.page.locator('dialog.ask').waitFor({ state: 'detached' });
  assert.deepEqual(on.commands('chat.stop'), []);
});

test('Escape in the search clears the search and nothing else', async () => {
  await on.open();
  await on.begin('A question');
  const search = on.page.locator('#search');
  await search.fill('another');
  await on.page.locator('#list .none', { hasText: 'No title or message' }).waitFor();
  await on.page.keyboard.press('Escape');
  assert.equal(await search.inputValue(), '');
  await on.page.locator('#list .name', { hasText: 'A question' }).waitFor();
  await on.page.keyboard.press('Escape'); // once more, there is nothing to clear
  assert.equal(await on.page.locator('dialog[open]').count(), 0);
  assert.equal(await focused(), 'search');
  assert.equal(await on.page.locator('.turn[aria-busy=true]').count(), 1);
  assert.deepEqual(on.commands('chat.stop'), []);
});

test('Enter on Retry now, pressed twice, does not end the turn', async () => {
  await on.open();
  const turn = await on.begin();
  waits(turn);
  turn.skip = () => asks(turn);
  await on.page.locator('#retry-now').waitFor();
  await on.page.locator('#retry-now').focus();
  await on.page.keyboard.press('Enter');
  await on.page.keyboard.press('Enter');
  await on.line('Asking again (retry 2 of 21)');
  await on.page.keyboard.press('Enter');
  assert.equal(await focused(), 'prompt');
  turn.say('Here.');
  await on.shows('Here.');
  assert.deepEqual([...on.commands('retry.abort'), ...on.commands('chat.stop')], []);
});

test('the focus never moves to the body', async () => {
  await on.open();
  const turn = await on.begin();
  waits(turn);
  turn.skip = () => asks(turn);
  // Hidden elements cannot be focused.
  await on.page.locator('#retry-now').waitFor();
  await on.page.locator('#retry-now').focus();
  await on.page.keyboard.press('Enter');
  await on.line('Asking again (retry 2 of 21)');
  assert.equal(await focused(), 'prompt');
  await on.page.locator('#retry-cancel').focus();
  await on.page.keyboard.press('Enter');
  await on.sealed();
  await on.page.locator('.again button').waitFor();
  assert.equal(await focused(), 'prompt');
  await on.page.locator('.again button').focus();
  const again = await on.begins(() => on.page.keyboard.press('Enter'));
  assert.equal(await focused(), 'prompt');
  await on.page.locator('#stop').waitFor();
  await on.page.locator('#stop').focus();
  await on.page.keyboard.press('Enter');
  await on.sealed();
  assert.equal(await focused(), 'prompt');
  assert.equal(again.retryOf, turn.id);
});

test('a button pressed while the server is down takes effect when it is back', async () => {
  await on.open();
  const turn = await on.begin();
  waits(turn, { nextAt: Date.now() + 60_000 });
  await on.until(() => !document.querySelector('#banner').hidden);
  await on.away();
  for (const [button, label, type] of [
    ['#retry-cancel', 'Give up', 'retry.abort'],
    ['#stop', 'Stop', 'chat.stop'],
  ]) {
    await on.page.locator(button).click();
    await on.page.locator('#connection', { hasText: `“${label}” will be sent.` }).waitFor();
    if (type !== 'chat.stop') continue;
    assert.equal(await on.page.locator('#stop').innerText(), 'Stopping…');
  }
  await on.back();
  await on.sealed();
  assert.deepEqual(['retry.abort', 'chat.stop'].map((type) => on.commands(type).length), [0, 1]);
  await on.page.locator('.note', { hasText: 'Stopped.' }).waitFor();
});

test('while the server is away, nothing is offered or told that it alone knows', async () => {
  await on.open();
  const turn = await on.begin();
  waits(turn, { nextAt: Date.now() + 60_000 });
  await on.page.locator('#retry-now').waitFor(); // what is hidden takes no focus
  await on.page.locator('#retry-now').focus();
  await on.away();
  assert.equal(await on.page.locator('#banner button:visible, #banner select:visible').count(), 2, 'to give up, and to be notified');
  assert.equal(await on.page.locator('#retry-now').isHidden(), true);
  assert.equal(await focused(), 'prompt');
  assert.match(await on.page.locator('#wait-line').textContent(), /^Server overloaded, retrying in \d/, 'this is decided');
  await on.back();
  await on.page.locator('#retry-now').waitFor();

  waits(turn, { attempt: 2, delayMs: 700, nextAt: Date.now() + 700 });
  await on.until(() => document.querySelector('#wait-note').textContent.startsWith('Retry 3'));
  await on.away();
  await on.line('Server overloaded, reconnecting to see what came next');
  await on.back();
  await on.line('Server overloaded, retrying now');

  turn.say('Here');
  await hidden('banner');
  silent(turn, {});
  await on.until(() => !document.querySelector('#silence').hidden);
  turn.tell({ type: 'step-complete', stepId: `${turn.id}#0` });
  silent(turn, { stepId: `${turn.id}#1` });
  await on.page.locator('#ask-again').waitFor();
  await on.away();
  assert.equal(await on.page.locator('#ask-again').isHidden(), true);
  await on.back();
  await on.page.locator('#ask-again').waitFor();
});

test('the buttons that end a turn say what they do', async () => {
  await on.open();
  waits(await on.begin());
  const end = (id) => on.page.locator(id).evaluate(({ innerText, title }) => `${innerText.trim()}: ${title}`);
  await on.page.locator('#retry-now').waitFor();
  assert.deepEqual(await Promise.all(['#retry-cancel', '#stop'].map(end)), [
    'Give up: End this turn, unless the provider answers first',
    'Stop: End this turn now; what is written stays (Esc)',
  ]);
});

test('a pressed button is released if its target is gone', async () => {
  await on.open();
  const turn = await on.begin();
  waits(turn, { nextAt: Date.now() + 60_000 });
  const asked = on.commanded('retry.now');
  await on.page.locator('#retry-now').click();
  await asked; // nothing comes of it
  await on.line('Server overloaded, retrying now');
  await on.away();
  await on.page.locator('#connection', { hasText: '“Retry now” will be sent.' }).waitFor();
  assert.match(await on.page.locator('#wait-line').textContent(), /retrying in \d/);
  // The wait to be skipped ended by itself, and the next one has begun.
  waits(turn, { attempt: 2, nextAt: Date.now() + 60_000 });
  await on.back();
  await on.until(() => document.querySelector('#wait-note').textContent.startsWith('Retry 3 of 21'));
  assert.equal(await on.page.locator('#retry-now').isEnabled(), true);

  await on.away();
  await on.page.locator('#stop').click();
  turn.end();
  turn.conversation.begin('Another');
  await on.back();
  await on.until(() => document.querySelectorAll('.bubble').length === 2);
  assert.equal(await on.page.locator('#stop').innerText(), 'Stop');
  assert.deepEqual([on.commands('retry.now').length, on.commands('chat.stop').length], [1, 0]);
});

test('a command lost with the connection is sent again', async () => {
  await on.open();
  const turn = await on.begin();
  waits(turn, { nextAt: Date.now() + 60_000 });
  await on.until(() => !document.querySelector('#banner').hidden);
  let times = 0;
  turn.skip = () => {
    times += 1;
    if (times === 1) on.server.cut(); // it came, and nothing came of it
    else asks(turn);
  };
  await on.page.locator('#retry-now').click();
  await on.line('Asking again (retry 2 of 21)');
  assert.equal(times, 2);
});

test('Stop that is pressed before the turn has begun stops it', async () => {
  await on.open();
  const conversation = on.server.conversation();
  conversation.begin('Before').end();
  await on.page.goto(`${on.server.url}/#/c/${conversation.id}`);
  await on.shows('Before');
  const begin = conversation.begin.bind(conversation);
  let start;
  conversation.begin = (text) => (start = () => begin(text));
  await on.page.locator('#prompt').fill('Slow');
  await on.page.locator('#send').click();
  await on.page.locator('#stop').click();
  await on.until(() => document.querySelector('#stop').innerText === 'Stopping…');
  assert.deepEqual(on.commands('chat.stop'), []);
  start();
  await on.page.locator('.note', { hasText: 'Stopped.' }).waitFor();
  assert.equal(on.commands('chat.stop').length, 1);
});

test('switches of target are shown above what follows them', async () => {
  await on.open();
  const turn = await on.begin();
  turn.tell({ type: 'target-switched', from: 'a/m', to: 'b/m', role: 'main', reason: 'a/m is overloaded' });
  waits(turn, { attempt: 0, delayMs: 0, target: 'b/m' });
  turn.say('From b.');
  turn.tell({ type: 'step-complete', stepId: `${turn.id}#0` });
  turn.tell({ type: 'target-restored', to: 'a/m', role: 'main' });
  turn.say('From a.');
  await on.shows('From a.');
  const told = await on.page.locator('.turn .note, .turn .answer').allTextContents();
  assert.deepEqual(told, ['Switched to b/m: a/m is overloaded.', 'From b.', 'Back to a/m.', 'From a.']);
  assert.deepEqual(on.page.wrongs, []);
});
