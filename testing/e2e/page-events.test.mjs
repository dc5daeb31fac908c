// Every state of the page that events lead to which a real provider would rarely cause, opened and left by keyboard alone (see
// support/states.mjs).
import { test } from 'node:test';
import { keysOf } from './support/keys.mjs';
import { stage } from './support/stage.mjs';
import { WIDTHS, drawer, inDrawer, noDrawer, nothing, panel, size, visit } from './support/states.mjs';

const SAID =
  '# Title\n\nSome `code`, a [link](https://example.org), ~~gone~~ and $a_1 + b^2$.\n\n- [x] done\n- [ ] to do\n\n> said\n\n' +
  '| a | b |\n|---|--:|\n| 1 | 2 |\n\n```rust\n// It adds.\nfn add(a: u32) -> Option<&str> { let b = 42; Some("b") }\n```\n\n' +
  '```html\n<p class="x">text</p>\n```\n\n```diff\n- old\n+ new\n```\n\n$$\n\\sum_i x_i\n$$\n';
const HOUR = 3_600_000;
const TOGETHER = { attempt: 0, maxAttempts: 21, target: 'demo/flaky' };
/** Waits of the kinds that are shown differently. */
const WAITS = {
  'a short wait': { category: 'overloaded', code: '529', message: 'HTTP 529: {"error":{"message":"Overloaded"}}', delayMs: 600_000, budgetLeftMs: 8 * HOUR },
  'a usage limit': { category: 'quota_exhausted', code: '429', message: 'You have hit your usage limit. It resets at 18:00.', delayMs: 5 * HOUR, hinted: true },
  'a wait for the network': { category: 'network', message: 'Offline, waiting for the network: no route to host', delayMs: 30_000 },
};
/** Failures that end a turn, with what the server says was done about them. */
const FAILURES = {
  'a failure without a retry': { category: 'auth', code: '401', message: 'HTTP 401: {"error":{"message":"bad key"}}', detail: 'the provider rejected the key', advice: 'Check the key of demo.' },
  'a failure after retries': { category: 'overloaded', code: '529', message: 'HTTP 529: <html><body>Overloaded</body></html>', retries: 21, waitedMs: 8 * HOUR, outcome: 'exhausted' },
};

const call = (turn, toolCallId, more) => ({ stepId: `${turn.id}#0`, toolCallId, toolName: 'shell', ...more });
/** Sends a message, which begins `on.turn`. */
const say = async (on, text) => {
  await on.keys.to('#prompt');
  on.turn = await on.begins(async () => (await on.keys.type(text), on.keys.press('Enter')));
};

const waits = Object.entries(WAITS).map(([name, wait]) => ({
  name,
  open: async (on) => {
    if (!on.turn) await say(on, 'Explain');
    on.turn.tell({ type: 'provider-retry', ...TOGETHER, ...wait, nextAt: Date.now() + wait.delayMs });
    await on.page.locator('#banner summary').waitFor({ state: wait.message.startsWith('HTTP') ? 'visible' : 'hidden' });
    if (wait.message.startsWith('HTTP')) await on.keys.activate('#banner summary');
    else await on.keys.to('#retry-cancel');
  },
  shows: '#banner:not([hidden])',
  leave: nothing,
}));

const ANSWER = [
  { name: 'a queued message', open: async ({ keys }) => (await keys.to('#prompt'), await keys.type('And then?'), await keys.press('Enter'), keys.to('#queue button')), shows: '#queue li', leave: ({ keys }) => keys.press('Enter') },
  { name: 'stop a wait', open: async ({ keys }) => keys.activate('#prompt', '', 'Escape'), shows: 'dialog.ask' },
  {
    name: 'the next call after a wait',
    open: ({ turn, keys }) => (turn.tell({ type: 'status', status: 'active', retry: { ...TOGETHER, ...WAITS['a short wait'], phase: 'asking' } }), keys.to('#retry-cancel')),
    shows: '#banner .ring.asking',
    leave: nothing,
  },
  {
    name: 'an answer being written',
    open: async ({ turn, page }) => {
      turn.tell({ type: 'compaction-started', cause: 'ahead' }, { type: 'compaction-completed', outcome: 'summarized', summary: 'They greeted each other.' });
      turn.tell({ type: 'reasoning-delta', delta: 'Let me think.' });
      turn.say(SAID);
      await page.waitForFunction(() => document.querySelector('.hljs-keyword') && document.querySelector('.hljs-addition') && document.querySelector('.katex'));
    },
    shows: '.answer',
    leave: nothing,
  },
  {
    name: 'calls: a review, a refusal, output, an approval, a login',
    open: async ({ turn, keys }) => {
      const about = (type, id, more) => ({ type, ...call(turn, id), ...more });
      const ids = ['reviewed', 'refused', 'running', 'asked', 'locked'];
      turn.tell(...ids.map((id) => about('tool-call', id, { input: { command: `ls ${id}` } })), { type: 'step-complete', stepId: `${turn.id}#0` });
      turn.tell(about('review-started', 'reviewed'), about('review-started', 'refused'));
      turn.tell(about('review-completed', 'refused', { attemptCount: 1, verdict: 'denied', riskLevel: 'high', rationale: 'It deletes everything.' }));
      turn.tell(about('tool-result', 'refused', { content: 'denied by review', isError: true, durationMs: 3 }));
      turn.tell(about('tool-output', 'running', { data: 'one file\n', stream: 'stdout' }), about('tool-output', 'running', { data: 'no such file\n', stream: 'stderr' }));
      turn.tell(about('approval-requested', 'asked', { input: { command: 'rm -r /tmp/x', timeout: 5 } }));
      turn.tell(about('question-asked', 'locked', { questionId: 'q', asker: 'vault', kind: 'login', message: 'vault needs a login.' }));
      for (const _ of ids) await keys.activate('.tool:not([open]) > summary');
      await keys.to('.question button');
    },
    shows: '.question button',
    leave: ({ turn }) => turn.tell({ type: 'tool-result', ...call(turn, 'locked'), content: 'no login', isError: true }),
  },
  {
    name: 'a report',
    open: async ({ turn, keys, page }) => {
      turn.tell({ type: 'report-missing', reason: 'the answer was text' }, { type: 'report-forced', by: 'max-steps' });
      turn.tell({ type: 'final-report', success: true, report: { status: 'done', findings: ['one', 'two'], cost: { total: 3 } } });
      turn.end('stop', { usage: { inputTokens: 3, outputTokens: 4 } });
      await page.waitForFunction(() => !document.querySelector('.turn[aria-busy=true]'));
      await keys.to('.report summary');
    },
    shows: '.report',
    leave: nothing,
  },
  {
    name: 'all of it unfolded',
    open: async ({ keys }) => {
      for (const fold of ['.compaction', '.reasoning']) await keys.activate(`${fold}:not([open]) > summary`);
    },
    shows: '.reasoning[open]',
    leave: nothing,
  },
  {
    name: 'a silence',
    open: async (on) => {
      await say(on, 'Are you there?');
      on.turn.tell({ type: 'provider-silent', stepId: `${on.turn.id}#0`, silentMs: 42_000, alive: false });
      await on.keys.to('#ask-again');
    },
    shows: '#silence',
    leave: ({ turn }) => {
      turn.say('Yes.');
      turn.tell({ type: 'final-report', success: false, reason: 'no report after three attempts', context: 'The model answered with text.' });
      turn.end();
    },
  },
  { name: 'no report', open: ({ keys }) => keys.to('#prompt'), shows: '.report.failed', leave: nothing },
];

const failures = Object.entries(FAILURES).map(([name, error]) => ({
  name,
  open: async (on) => {
    await say(on, name);
    on.turn.tell({ type: 'error', ...error });
    on.turn.end('error');
    await on.keys.activate('.error summary');
    await on.keys.to('.again button');
  },
  shows: '.again',
  leave: nothing,
}));

const AROUND = [
  { name: 'servers', ...panel('nodes') },
  { name: 'calls and unavailable models', open: async (on) => (await drawer(on), on.keys.to('#call-list button')), shows: '#call-list li', leave: noDrawer },
  { name: 'callers with limits', open: async (on) => (await inDrawer('#callers-button')(on), on.keys.to('#caller-list button', 'Limits')), shows: '#caller-list li', back: '#callers-button' },
  { name: 'usage of many days', open: inDrawer('#usage-button'), shows: '#usage-models table' },
  {
    name: 'offline',
    open: async (on) => (await noDrawer(on), await on.away(), on.keys.to('#prompt')),
    shows: 'body.offline',
    leave: ({ server }) => ((server.token = 't'), server.reopen()),
  },
  { name: 'a token is asked for', open: ({ page }) => page.reload(), shows: '#token[open]', leave: nothing },
];

/** What the server tells beside conversations. */
function furnish(server) {
  const node = (id) => ({ id, name: `${id}.example:4777`, version: '0.1.0', startedAt: 1_790_000_000_000, turns: 2 });
  server.cluster = { node: 'b', nodes: [node('a'), node('b')] };
  server.calls = [{ id: 'call-1', program: 'claude-cli/2.1', model: 'sonnet', target: 'anthropic/sonnet', phase: 'waiting', startedAt: 1, retries: 4, waitedMs: 0, listeners: 1, nextAt: Date.now() + HOUR, category: 'overloaded', because: 'HTTP 529: Overloaded' }];
  server.targets = [{ target: 'demo/flaky', until: new Date(2030, 0, 1).getTime(), category: 'rate_limited' }];
  const used = { turns: 40, survived: 7, failed: 1, waitedMs: 900_000, requests: 1234, refusals: 30, inputTokens: 900_000, outputTokens: 50_000, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, cost: 1.25 };
  const day = (ago) => new Date(Date.now() - ago * 24 * HOUR).toISOString().slice(0, 10);
  server.usage = (by, from) => ({ from, to: day(0), by: [by], rows: Array.from({ length: 9 }, (_, at) => ({ ...(by === 'day' ? { day: day(8 - at) } : { caller: 'ann', model: `sim/${at}` }), ...used, turns: 40 + at })), total: used });
  server.callers = { callers: [{ name: 'ann', scopes: ['chat'], status: 'valid', configured: false, tokensPerDay: 5_000_000 }] };
}

const on = stage();
for (const width of WIDTHS) {
  test(`every state that events lead to, ${width} px`, async () => {
    furnish(on.server);
    on.turn = null;
    await on.open('/', size(width));
    await visit(Object.assign(on, { keys: keysOf(on.page) }), [...waits, ...ANSWER, ...failures, ...AROUND], width);
  });
}
