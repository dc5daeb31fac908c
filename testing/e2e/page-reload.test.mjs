// The page shows the same live and after a reload.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { send } from './support/browser.mjs';
import { stage } from './support/stage.mjs';

const on = stage();
const USAGE = { inputTokens: 1200, outputTokens: 34 };
const FIGURES = { durationMs: 9400, firstTokenMs: 5028, usage: USAGE, contextSize: 1234 };
const step = (turn, number) => ({ type: 'step-complete', stepId: `${turn.id}#${number}` });
const shown = (selector) => on.page.locator(selector).allTextContents();
const tryAgain = () => on.begins(() => on.page.locator('.again button').click());
const asked = (turn, attempt) =>
  turn.tell({ type: 'status', status: 'active', retry: { phase: 'asking', attempt, delayMs: 5000, maxAttempts: 21 } });

function look(turn, number) {
  const call = { stepId: `${turn.id}#${number}`, toolCallId: 'a', toolName: 'look' };
  turn.tell({ type: 'tool-call', ...call, input: {} }, step(turn, number));
  turn.tell({ type: 'tool-result', ...call, content: 'seen', isError: false });
}

/**
 * Everything shown, in order, including collapsed parts. The boundaries between the steps of a turn are not visible.
 */
const said = () =>
  on.page.evaluate(() => {
    const copy = document.querySelector('#transcript').cloneNode(true);
    for (const seam of copy.querySelectorAll('.history, .passage')) seam.replaceWith(...seam.childNodes);
    for (const node of copy.querySelectorAll('*')) {
      for (const name of ['aria-busy', 'tabindex', 'role', 'data-seq', 'data-first-seq']) node.removeAttribute(name);
      if (node.classList.contains('foot')) node.className = 'foot';
    }
    return copy.innerHTML.replaceAll('><', '>\n<').split('\n');
  });

/** Reloads, and checks that the page shows the same. */
async function isSame() {
  const before = await said();
  await on.page.reload();
  await on.page.locator('.history .turn').first().waitFor();
  await on.until((ends) => document.querySelectorAll('.again').length === ends, before.join('').split('"again"').length - 1);
  assert.deepEqual(await said(), before);
  assert.deepEqual(on.page.wrongs, []);
}

test('a failure is named the same', async () => {
  await on.open();
  for (const [failure, title] of [
    [{ category: 'quota_exhausted', code: '429' }, 'Usage limit reached (429)'],
    [{ category: 'context_overflow', code: '400' }, 'The conversation is too long for this model (400)'],
    [{ category: 'network' }, 'Connection to the provider lost'],
  ]) {
    const turn = await on.begin();
    turn.say('Half an');
    turn.tell({ type: 'error', message: 'HTTP 4xx: {}', ...failure }, step(turn, 0));
    turn.end('error');
    await on.sealed();
    assert.equal((await shown('.error-title')).at(-1), title);
    await isSame();
  }
  // The turn has the category of an error stored by an older version.
  const { conversation } = { conversation: [...on.server.conversations.values()][0] };
  delete conversation.chunks.findLast(({ chunk }) => chunk.type === 'error').chunk.category;
  await isSame();
});

test('a stopped or cut-off answer says so, has its metrics and can be repeated', async () => {
  await on.open();
  for (const [reason, note, again] of [
    ['length', 'Cut off: the model reached its length limit.', 0],
    ['max-steps', 'Stopped: the turn reached its step limit.', 0],
    ['content-filter', 'Cut off by the provider’s content filter.', 0],
    ['aborted', 'Stopped.', 1],
  ]) {
    const turn = await on.begin();
    asked(turn, 0);
    asked(turn, 1);
    turn.say('A step.');
    look(turn, 0);
    turn.say('Half an');
    turn.tell(step(turn, 1));
    turn.end(reason, FIGURES);
    await on.sealed();
    assert.equal((await shown('.note')).filter(Boolean).at(-1), note);
    assert.equal(await on.page.locator('.again').count(), again);
    const steps = reason === 'aborted' ? '' : '2 steps · ';
    const figures = `9.4 s · first token 5.0 s · ${steps}2 retries · 1,200 in, 34 out · context 1,234`;
    assert.equal((await shown('.foot')).at(-1), figures);
    await isSame();
  }
});

test('the model is known as soon as the turn ends, without asking for it', async () => {
  await on.open();
  const asked = [];
  on.page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  const turn = await on.begin();
  turn.say('A step.');
  turn.tell(step(turn, 0));
  turn.end('stop', { ...FIGURES, model: 'demo/other' });
  await on.sealed();
  assert.match((await shown('.foot'))[0], /^demo\/other · 9.4 s/);
  assert.deepEqual(asked.filter((path) => path.includes('/turns/')), []);
  await isSame();
});

test('a first wait that was cancelled made no retries', async () => {
  await on.open();
  const turn = await on.begin();
  turn.tell({ type: 'provider-retry', attempt: 0, delayMs: 60_000, message: 'm' });
  turn.end('aborted', { durationMs: 5000 });
  await on.sealed();
  assert.deepEqual(await shown('.foot'), ['5.0 s']);
  await isSame();
});

test('steering messages and steps stay with their turn', async () => {
  await on.open();
  const turn = await on.begin('Go');
  turn.say('First.');
  look(turn, 0);
  turn.tell({ type: 'steering', text: 'Faster' });
  turn.tell({ type: 'reasoning-delta', delta: 'Hm.' });
  turn.say('Second.');
  turn.tell(step(turn, 1));
  turn.end('stop', FIGURES);
  await on.sealed();
  assert.deepEqual(await on.bubbles(), ['Go', 'Faster']);
  assert.equal(await on.page.locator('.steering').count(), 1);
  await isSame();
});

test('trying again uses the same history, and folds what it replaces', async () => {
  await on.open();
  const first = await on.begin('Hard question');
  first.say('Let me look.');
  look(first, 0);
  first.say('It is perhaps');
  first.tell({ type: 'error', message: 'HTTP 429: {}', code: '429', category: 'quota_exhausted' }, step(first, 1));
  first.end('error', FIGURES);
  await on.sealed();

  const second = await tryAgain(); // is stopped before it says anything
  assert.deepEqual(await shown('.replaced > summary'), ['Earlier version']);
  assert.deepEqual(await shown('.replaced .answer'), ['It is perhaps']);
  assert.equal(await on.page.locator('.replaced .error').count(), 1);
  second.end('aborted');
  await on.sealed();
  await isSame();

  const third = await tryAgain();
  third.say('Still half');
  await on.shows('Still half');
  await on.page.reload();
  await on.shows('Still half');
  assert.equal(await on.page.locator('.replaced').count(), 2);
  third.end('aborted');
  await on.sealed();
  await isSame();

  const last = await tryAgain();
  last.say('It is blue.');
  last.tell(step(last, 0));
  last.end('stop', FIGURES);
  await on.sealed();
  assert.equal(await on.page.locator('.replaced').count(), 3);
  assert.deepEqual(await on.bubbles(), ['Hard question']);
  const visible = await on.page.locator('#transcript').innerText();
  assert.ok(!/perhaps|half|Stopped|Usage limit/.test(visible), visible);
  assert.match(visible, /Let me look\.[^]*It is blue\./);
  await isSame();
  assert.deepEqual(on.commands('chat.send').length, 1);
  assert.deepEqual(on.commands('chat.retry').map(({ turnId }) => turnId), [first.id, second.id, third.id]);

  // The loaded window may begin with the turn that supersedes.
  const { conversation } = last;
  const all = conversation.window.bind(conversation);
  conversation.window = (since, before) => all(Math.max(since, before === Infinity ? last.firstSeq - 1 : 0), before, Infinity);
  await on.page.reload();
  await on.page.locator('.older').click();
  await on.until(() => document.querySelectorAll('.bubble').length === 1);
  const older = await on.page.locator('#transcript').innerText();
  assert.ok(!/perhaps|half|Stopped/.test(older), older);
});

test('pressed repeatedly, it tries once; if refused, it says why', async () => {
  await on.open();
  const turn = await on.begin();
  turn.end('aborted');
  await on.sealed();
  const again = on.page.locator('.again button');
  on.server.onCommand = ({ type }) => type === 'chat.retry' && turn.conversation.metrics.push({ turnId: 'other' });
  await again.dispatchEvent('click');
  await on.page.locator('.again .note', { hasText: 'it is not the last turn' }).waitFor();
  assert.equal(await again.isEnabled(), true);
  turn.conversation.metrics.pop();
  on.server.onCommand = () => {};
  const next = await on.begins(() => again.evaluate((button) => [1, 2, 3].forEach(() => button.click())));
  assert.equal(await on.page.locator('.again').count(), 0);
  assert.equal(on.commands('chat.retry').length, 2);
  assert.equal(next.retryOf, turn.id);
  assert.equal(await on.page.locator('.toast').count(), 0);
});

test('an old history without turn metadata is shown as far as possible', async () => {
  const conversation = on.server.conversation();
  conversation.keep('user', { type: 'text', text: 'One' });
  conversation.keep('assistant', { type: 'text', text: 'Half' });
  conversation.keep('assistant', { type: 'error', message: 'HTTP 500: {}', code: '500' });
  conversation.keep('assistant', { type: 'text', text: 'Whole' });
  conversation.chunks.at(-1).supersedes = 2;
  conversation.keep('user', { type: 'text', text: 'Two' });
  await on.open(`/#/c/${conversation.id}`);
  await on.shows('Two');
  assert.deepEqual(await shown('.replaced .answer'), ['Half']);
  assert.equal(await on.page.locator('.turn').count(), 3);
  assert.equal(await on.page.locator('.again').count(), 0);
});

test('a message sent while an unanswered turn is shown is not a retry', async () => {
  await on.open();
  (await on.begin('One')).end('aborted');
  await on.sealed();
  await on.page.reload();
  await on.page.locator('.again').waitFor();
  await on.begins(() => send(on.page, 'Two'));
  assert.deepEqual(await on.bubbles(), ['One', 'Two']);
  assert.equal(await on.page.locator('.replaced').count(), 0);
});

test('how the questions of tools ended is the same, whatever became of them', async () => {
  await on.open();
  const turn = await on.begin();
  const ends = [
    { kind: 'form', outcome: 'accepted', via: 'page', name: 'ann' },
    { kind: 'form', outcome: 'declined', via: 'http' },
    { kind: 'url', outcome: 'cancelled', via: 'terminal' },
    { kind: 'form', outcome: 'withdrawn' },
    { kind: 'login', outcome: 'accepted' },
    { kind: 'login', outcome: 'declined', via: 'page' },
  ].map((end, at) => ({ ...end, asker: 'hotel', questionId: `q${at}` }));
  const call = (at) => ({ stepId: `${turn.id}#0`, toolCallId: `c${at}`, toolName: 'book' });
  turn.tell(...ends.map((_, at) => ({ type: 'tool-call', ...call(at), input: {} })), step(turn, 0));
  for (const [at, { kind, asker, questionId, ...end }] of ends.entries()) {
    turn.tell({ type: 'question-asked', ...call(at), questionId, asker, kind, message: 'Which?', fields: [] });
    turn.tell({ type: 'question-settled', ...call(at), questionId, asker, kind, ...end });
    turn.tell({ type: 'tool-result', ...call(at), content: 'told', isError: at === 3, questions: [ends[at]] });
  }
  turn.end();
  await on.sealed();
  assert.deepEqual(await shown('.permission > p'), [
    'Answered (hotel) by ann (page)',
    'Declined to answer (hotel) (HTTP)',
    'Dismissed the question (hotel) (terminal)',
    'Question withdrawn (hotel)',
    'Logged in (hotel)',
    'Declined to answer (hotel) (page)',
  ]);
  await isSame();
});

test('everything is shown although the first answers are cut', async () => {
  const cluster = { node: 'a', nodes: [{ id: 'a', name: 'a', turns: 0, version: '1' }] };
  const until = Date.now() + 3_600_000;
  Object.assign(on.server, {
    tools: { tools: [{ name: 'look', description: '', policy: 'allow', inputSchema: {} }], sources: [] },
    targets: [{ target: 'demo/other', until, category: 'auth' }],
    calls: [{ id: 'c', program: 'codex', model: 'm', target: 'demo/other', phase: 'asking', retries: 0, listeners: 1 }],
    cluster,
  });
  await on.open();
  const turn = await on.begin('What now?');
  turn.say('There.');
  turn.end();
  await on.sealed();
  const asked = new Map();
  on.server.cuts = (path) => {
    if (path === '/' || path.startsWith('/page/')) return false;
    asked.set(path, (asked.get(path) ?? 0) + 1);
    return asked.get(path) <= 2; // some are asked for again as soon as there is a socket
  };
  await on.page.reload();
  await on.shows('There.');
  for (const shown of ['#tools-button', '#nodes-button', '#target-list li', '#call-list li']) await on.page.locator(shown).waitFor();
  await on.page.locator('#list a', { hasText: 'What now?' }).waitFor();
  assert.equal(await on.page.locator('#model option:enabled[value^=demo]').count(), 2);
  assert.ok([...asked.values()].every((times) => times > 2), JSON.stringify([...asked]));
  assert.deepEqual(on.page.wrongs.filter((wrong) => !/ERR_INCOMPLETE_CHUNKED_ENCODING/.test(wrong)), []);
});

test('the page is loaded again if a module is cut, but not for ever', async () => {
  await on.open();
  let cuts = 0;
  const cut = (most) => {
    cuts = 0;
    on.server.cuts = (path) => path === '/page/wording.js' && (cuts += 1) <= most;
  };
  cut(2);
  await on.page.reload();
  await on.page.locator('#model option').first().waitFor({ state: 'attached' });
  assert.equal(cuts, 3);
  cut(Infinity);
  await on.page.reload();
  while (cuts < 4) await on.page.waitForEvent('load');
  await on.until(() => document.readyState === 'complete');
  assert.equal(await on.page.evaluate(() => sessionStorage.getItem('everturn.starts')), '3');
  assert.equal(cuts, 4);
  on.server.cuts = () => false;
  await on.page.reload();
  await on.until(() => sessionStorage.getItem('everturn.starts') === null);
});
