// Page states that a real provider would rarely cause. A scripted server sends events when the test wants.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { answerText, launch, openPage, send } from './support/browser.mjs';
import { ScriptedServer } from './support/scripted-server.mjs';

let browser;
let server;
let page;

before(async () => {
  browser = await launch();
});
after(() => browser?.close());
beforeEach(async () => {
  server = await new ScriptedServer().listen();
});
afterEach(async () => {
  await page?.context().close();
  await server?.close();
});

async function open(path = '/') {
  page = await openPage(browser, server.url + path);
  await until(() => document.querySelector('#model option') !== null);
}

/** Sends a prompt; resolves to the turn that it began, shown on the page. */
async function begin(text = 'What now?') {
  const begun = new Promise((resolve) => (server.onTurn = resolve));
  await send(page, text);
  const turn = await begun;
  server.onTurn = () => {};
  await page.locator('.turn[aria-busy=true]').last().waitFor();
  return turn;
}

const until = (condition, argument) => page.waitForFunction(condition, argument);
const bubbles = () => page.locator('.bubble').allTextContents();
const shows = (text) => until((wanted) => document.querySelector('#transcript').innerText.includes(wanted), text);
const sealed = () => until(() => document.querySelector('.turn') && !document.querySelector('.turn[aria-busy=true]'));
const commands = (type) => server.commands.filter((command) => command.type === type);
/** Waits for a command of a client. */
const commanded = (type) =>
  new Promise((resolve) => {
    server.onCommand = (command) => command.type === type && resolve(command);
  });
const step = (turn, number) => `${turn.id}#${number}`;

test('a tool call shows its input, its live output and its result', async () => {
  await open();
  const turn = await begin();
  // Reasoning hidden by the provider is stored without text, so there is nothing to show.
  const echo = { origin: 'anthropic api.anthropic.com', data: { type: 'redacted_thinking', data: 'EmwK' } };
  turn.conversation.keep('assistant', { type: 'thinking', text: '', echo });
  turn.tell({ type: 'reasoning-delta', delta: 'Let me think.' });
  turn.say('Looking.');
  const call = (toolCallId, toolName, input) => ({ type: 'tool-call', stepId: step(turn, 0), toolCallId, toolName, input });
  turn.tell(call('a', 'shell', { command: 'ls <b>' }), call('b', 'fetch', {}));
  turn.tell({ type: 'tool-output', toolCallId: 'a', data: 'Cargo.toml\n', stream: 'stdout' });
  turn.tell({ type: 'step-complete', stepId: step(turn, 0) });
  await page.locator('.tool.working', { hasText: 'Cargo.toml' }).waitFor({ state: 'attached' });
  const result = (toolCallId, toolName, content, isError) =>
    turn.tell({ type: 'tool-result', stepId: step(turn, 0), toolCallId, toolName, content, isError, durationMs: 1203 });
  result('b', 'fetch', '(tool failed: refused)', true);
  result('a', 'shell', 'one file', false);
  turn.say('One file.');
  turn.tell({ type: 'step-complete', stepId: step(turn, 1) });
  turn.end();
  await sealed();
  const cards = await page.locator('.tool').allTextContents();
  assert.deepEqual(cards, [
    'shellls <b>done · 1.2 sInput{\n  "command": "ls <b>"\n}OutputCargo.toml\nResultone file',
    'fetchfailed · 1.2 sInput{}Error(tool failed: refused)',
  ]);
  assert.equal(await answerText(page), 'Looking.\nOne file.');

  await page.reload();
  await page.locator('.history .tool.failed').waitFor();
  assert.equal(await answerText(page), 'Looking.\nOne file.');
  assert.equal(await page.locator('.thought').textContent(), 'Let me think.');
  assert.equal(await page.locator('.tool').count(), 2);
  assert.deepEqual(page.wrongs, []);
});

test('a rewound step withdraws what it showed, and only that', async () => {
  await open();
  const turn = await begin();
  turn.say('First step.');
  turn.tell({ type: 'tool-call', stepId: step(turn, 0), toolCallId: 'a', toolName: 'look', input: {} });
  turn.tell({ type: 'step-complete', stepId: step(turn, 0) });
  turn.tell({ type: 'tool-result', stepId: step(turn, 0), toolCallId: 'a', toolName: 'look', content: 'x', isError: false });
  turn.tell({ type: 'steering', text: 'Be brief.' });
  turn.say('Second, half');
  turn.tell({ type: 'tool-call', stepId: step(turn, 1), toolCallId: 'a', toolName: 'look again', input: {} });
  await shows('look again');
  turn.tell({ type: 'step-rewound', stepId: step(turn, 1), reason: 'restart' });
  turn.say('Second, whole.');
  turn.end();
  await sealed();
  assert.equal(await answerText(page), 'First step.\nSecond, whole.');
  assert.equal(await page.locator('.tool').count(), 1);
  assert.deepEqual(await bubbles(), ['What now?', 'Be brief.']);
});

test('an error ends the turn visibly, and can be retried', async () => {
  await open();
  const turn = await begin('Try this.');
  turn.say('Half an');
  turn.tell({ type: 'error', message: 'HTTP 401: {"error":"bad key"}', code: '401', category: 'auth' });
  turn.tell({ type: 'step-complete', stepId: step(turn, 0) });
  turn.end('error');
  await sealed();
  const error = page.locator('.error');
  const lines = (await error.innerText()).split('\n').filter(Boolean);
  assert.deepEqual(lines, ['The provider did not accept the key (401)', 'bad key', 'Provider’s message']);
  await error.locator('summary').click();
  assert.equal(await error.locator('pre').innerText(), 'HTTP 401: {"error":"bad key"}');
  await page.reload();
  await page.locator('.history .error').waitFor();
  assert.equal(await answerText(page), 'Half an');
  await page.locator('.again button').click();
  await until(() => document.querySelector('.turn[aria-busy=true]') && !document.querySelector('.again'));
  assert.deepEqual(commands('chat.retry').map(({ turnId }) => turnId), [turn.id]);
  assert.deepEqual(commands('chat.retry')[0].retry, { afterContent: 'rewind' }, 'as for a message');
  assert.deepEqual(await bubbles(), ['Try this.']);
});

test('a turn that gave up says what was tried and what to do, also after a reload', async () => {
  await open();
  const paragraphs = () => page.locator('.error').last().locator('p').allTextContents();
  const advice = 'The provider is out of capacity at the moment: wait, or switch to another model.';
  const detail = 'the next attempt would be in 61 s, the budget leaves 60 s';
  const overloaded = { type: 'error', message: 'HTTP 529: {}', code: '529', category: 'overloaded' };
  for (const [facts, ...expected] of [
    [{ retries: 21, waitedMs: 27_105_000, outcome: 'exhausted', advice }, 'Gave up after 21 retries over 7 h 32 min.', advice],
    [
      { retries: 1, waitedMs: 5000, outcome: 'too-long', detail, advice },
      'Gave up after 1 retry over 5.0 s.',
      `Not retried: ${detail}.`,
      advice,
    ],
    [{ retries: 2, waitedMs: 65_000, outcome: 'not-retryable' }, 'Failed after 2 retries over 1 min 05 s; waiting would not help.'],
    [{ outcome: 'too-long', detail }, `Not retried: ${detail}.`],
    [{}],
  ]) {
    const turn = await begin('Try this.');
    turn.tell({ ...overloaded, ...facts });
    turn.end('error');
    await sealed();
    const told = ['Server overloaded (529)', ...expected];
    assert.deepEqual(await paragraphs(), told);
    await page.reload();
    await page.locator('.history .error').last().waitFor();
    assert.deepEqual(await paragraphs(), told);
  }
  assert.deepEqual(page.wrongs, []);
});

test('unusual endings are shown', async () => {
  await open();
  (await begin()).end('length');
  await sealed();
  assert.match(await page.locator('.note').textContent(), /length limit/);
});

test('the banner names the failure, and an old wait shows only the rest', async () => {
  await open();
  const turn = await begin();
  const retry = (fields) => turn.tell({ type: 'provider-retry', attempt: 0, message: 'm', ...fields });
  const line = (text) => until((wanted) => document.querySelector('#wait-line').textContent === wanted, text);
  retry({ delayMs: 3_600_000, code: '429' });
  await line('Rate limited, retrying in 1 h 00 min');
  retry({ delayMs: 30_000, category: 'rate_limited', shared: true, because: 'line' });
  await line('Rate limited, retrying within 30 s'); // behind other calls
  retry({ delayMs: 90_000, category: 'network', attempt: 4, maxAttempts: 21, hinted: true });
  await line('Connection to the provider lost, retrying in 1 min 30 s');
  assert.equal(await page.locator('#wait-note').textContent(), 'Retry 5 of 21 · the provider asked for this wait');
  retry({ delayMs: 5000, nextAt: Date.now() - 60_000, code: '529' });
  await line('Server overloaded, retrying now');
  turn.tell({ type: 'text-delta', delta: 'There.' });
  await until(() => document.querySelector('#banner').hidden);
});

test('after a lost connection everything is shown, once', async () => {
  await open();
  const turn = await begin();
  turn.say('One ');
  await shows('One');
  const back = commanded('chat.subscribe');
  server.cut();
  turn.say('two ');
  assert.equal((await back).cursor, '3');
  turn.say('three.');
  turn.end();
  await sealed();
  assert.equal(await answerText(page), 'One two three.');
  assert.equal(await page.locator('#connection').textContent(), '');
});

test('the page shows a lost connection, and keeps the draft', async () => {
  await open();
  await begin();
  await server.close();
  await page.locator('#connection', { hasText: 'Reconnecting' }).waitFor();
  await send(page, 'Still here?');
  await page.locator('.toast').waitFor();
  assert.equal(await page.locator('#prompt').inputValue(), 'Still here?');
  server = await Object.assign(new ScriptedServer(), { port: server.port }).listen();
  await until(() => document.querySelector('#connection').textContent === '');
});

test('a reload shows nothing of the running turn twice, whatever its messages say', async () => {
  await open();
  const first = await begin('Again');
  first.say('Done.');
  first.end();
  await sealed();
  const turn = await begin('Again');
  turn.say('A step.');
  turn.tell({ type: 'step-complete', stepId: step(turn, 0) });
  turn.tell({ type: 'steering', text: 'Again' });
  turn.say('Another');
  await shows('Another');
  await page.reload();
  await shows('Another');
  turn.say(' step.');
  turn.end();
  await sealed();
  assert.deepEqual(await bubbles(), ['Again', 'Again', 'Again']);
  assert.equal(await answerText(page), 'Done.\nA step.\nAnother step.');
});

test('turns that begin and end while history is fetched are shown once', async () => {
  const conversation = server.conversation();
  const old = conversation.begin('Old');
  old.say('Past.');
  old.end();
  const plays = [
    () => {
      const whole = conversation.begin('Quick');
      whole.say('Over.');
      whole.end();
    },
    () => conversation.begin('Slow').say('Still'),
  ];
  // A turn begins after the status was answered and before history is; and so on in the next round.
  server.beforeAnswer = async (path) => path === `/conversations/${conversation.id}` && plays.shift()?.();
  await open(`/#/c/${conversation.id}`);
  await shows('Still');
  conversation.turn.say(' going.');
  await shows('Still going.');
  assert.deepEqual(await bubbles(), ['Old', 'Quick', 'Slow']);
  assert.equal(await answerText(page), 'Past.\nOver.\nStill going.');
});

test('a message sent during a turn is queued, steers it, and can be removed', async () => {
  await open();
  const turn = await begin();
  await send(page, 'First thing');
  await page.locator('#queue li', { hasText: 'First thing' }).waitFor();
  assert.equal(await page.locator('#queue-hint').innerText(), 'The model gets it with the next tool result, or when this answer ends.');
  await send(page, 'Second thing');
  await page.locator('#queue li', { hasText: 'Second thing' }).waitFor();
  await page.locator('#queue li', { hasText: 'First thing' }).locator('button').click();
  await until(() => document.querySelectorAll('#queue li').length === 1);
  turn.conversation.queue = [];
  turn.tell({ type: 'queue-changed', queue: [] }, { type: 'steering', text: 'Second thing' });
  await page.locator('.steering', { hasText: 'Second thing' }).waitFor();
  assert.equal(await page.locator('.steering .joined').textContent(), 'Joined this answer');
  assert.equal(await page.locator('#queue').isHidden(), true);
  const stopped = commanded('chat.stop');
  await page.keyboard.press('Escape');
  await stopped;
  await sealed();
});

test('a refused message goes back into the field', async () => {
  await open();
  const turn = await begin();
  turn.end();
  await sealed();
  turn.conversation.turn = { end() {} };
  await send(page, 'Not now');
  await page.locator('.toast', { hasText: 'a turn is running' }).waitFor();
  assert.equal(await page.locator('#prompt').inputValue(), 'Not now');
  assert.deepEqual(await bubbles(), ['What now?']);
});

test('the transcript stays at the end unless the reader scrolled up', async () => {
  await open();
  const turn = await begin();
  const lines = (count) => turn.say(...Array.from({ length: count }, (_, index) => `Line ${index}.\n\n`));
  const toEnd = () => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector('#scroll');
    return scrollHeight - scrollTop - clientHeight;
  };
  lines(100);
  await shows('Line 99.');
  await until(`(${toEnd})() < 2`);
  // An update in the same frame moves it to the end again.
  await until(() => {
    const { hidden } = document.querySelector('#latest');
    if (hidden) document.querySelector('#scroll').scrollTo(0, 100);
    return !hidden;
  });
  turn.say('The end of it.');
  await shows('The end of it.');
  assert.equal(await page.locator('#scroll').evaluate((node) => node.scrollTop), 100);
  await page.locator('#latest').click();
  await until(`(${toEnd})() < 2`);
  assert.equal(await page.locator('#latest').isHidden(), true);
});

test('older messages are loaded on demand, calls and results across windows joined', async () => {
  const conversation = server.conversation();
  for (let index = 1; index <= 99; index += 1) conversation.keep('user', { type: 'text', text: `Message ${index}.` });
  const tool = { stepId: 't#0', toolCallId: 'a', toolName: 'look' };
  conversation.keep('assistant', { type: 'tool-call', ...tool, input: { where: 'up' } });
  conversation.keep('tool', { type: 'tool-result', ...tool, content: 'sky', isError: false });
  for (let index = 1; index < 200; index += 1) conversation.keep('assistant', { type: 'text', text: `Answer ${index}.` });
  await open(`/#/c/${conversation.id}`);
  await shows('Answer 199.');
  assert.equal(await page.locator('.tool').textContent(), 'lookdoneResultsky');
  await page.locator('.older').click();
  await until(() => document.querySelectorAll('.bubble').length === 99 && !document.querySelector('.older'));
  assert.deepEqual(await page.locator('.tool').allTextContents(), ['lookupdoneInput{\n  "where": "up"\n}Resultsky']);
});

test('a report whose call is in an older window is on its card once that is loaded', async () => {
  const conversation = server.conversation();
  for (let index = 1; index <= 99; index += 1) conversation.keep('user', { type: 'text', text: `Message ${index}.` });
  const call = { stepId: 't#0', toolCallId: 'a', toolName: 'final_report' };
  conversation.keep('assistant', { type: 'tool-call', ...call, input: { verdict: 'fine' } });
  conversation.keep('tool', { type: 'tool-result', ...call, content: 'accepted', isError: false });
  conversation.metrics.push({ turnId: 't', firstSeq: 99, lastSeq: 101, reason: 'stop', usage: {}, finalReport: { success: true } });
  for (let index = 1; index < 200; index += 1) conversation.keep('assistant', { type: 'text', text: `Answer ${index}.` });
  await open(`/#/c/${conversation.id}`);
  await shows('Answer 199.');
  assert.match(await page.locator('.report').textContent(), /See the input of final_report above/);
  await page.locator('.older').click();
  await until(() => document.querySelector('.report dd')?.textContent === 'fine');
  assert.equal(await page.locator('.report').count(), 1);
});

test('a dot shows the status of every conversation, newest first', async () => {
  const other = server.conversation();
  other.begin('Elsewhere').end();
  await open();
  const turn = await begin('Here');
  await until(() => document.querySelectorAll('#list .dot.active').length === 1);
  assert.deepEqual(await page.locator('#list .name').allTextContents(), ['Here', 'Elsewhere']);
  turn.end();
  await until(() => document.querySelectorAll('#list .dot.idle').length === 2);
  await page.locator('#list a', { hasText: 'Elsewhere' }).click();
  await until(() => document.querySelector('.bubble')?.textContent === 'Elsewhere');
  assert.equal(new URL(page.url()).hash, `#/c/${other.id}`);
});

test('the token is sent over HTTP and WebSocket', async () => {
  server.token = 'open sesame?';
  page = await openPage(browser, `${server.url}/`);
  const answer = async (token) => {
    await page.locator('#token-field').fill(token);
    await page.locator('#token button').click();
  };
  await answer('wrong');
  await page.locator('#token-note', { hasText: 'does not know this token' }).waitFor();
  await answer(server.token);
  await until(() => document.querySelector('#model option') !== null);
  const turn = await begin();
  turn.say('Come in.');
  await shows('Come in.');
  await page.reload();
  await shows('Come in.');
});

test('an unknown conversation is reported', async () => {
  const asked = [];
  server.beforeAnswer = async (path) => path.endsWith('/status') && asked.push(path);
  await open('/#/c/nowhere');
  await page.locator('.notice').waitFor();
  for (let calls = 0; calls < 10; calls += 1) await page.evaluate(async () => (await fetch('models')).text());
  assert.equal(await page.locator('.toast').count(), 0);
  assert.equal(asked.length, 1);
  assert.equal(commands('chat.subscribe').length, 1);
});

test('twenty thousand deltas arrive whole, and the page stays usable', async () => {
  await open();
  const turn = await begin();
  const words = Array.from({ length: 20_000 }, (_, index) => `w${index}${index % 40 === 39 ? '.\n\n' : ' '}`);
  await page.evaluate(() => {
    let last = performance.now();
    window.longest = 0;
    const tick = (now) => {
      window.longest = Math.max(window.longest, now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  for (let at = 0; at < words.length; at += 500) {
    turn.say(...words.slice(at, at + 500));
    await shows(`w${at + 499}`);
  }
  turn.end();
  await sealed();
  const text = (await answerText(page)).replaceAll(/\s+/g, ' ').trim();
  assert.equal(text, words.join('').replaceAll(/\s+/g, ' ').trim());
  console.log(`# longest frame: ${Math.round(await page.evaluate(() => window.longest))} ms`);
});

test('a replayed turn is shown again from the start, and the rest of an unknown one is not shown', async () => {
  await open();
  const turn = await begin('Once');
  const ofOther = { conversationId: turn.conversation.id, turnId: 'another' };
  turn.say('Half');
  await shows('Half');
  server.publish(turn.conversation, { type: 'text-delta', delta: 'ghost', ...ofOther });
  turn.say(' way');
  await shows('Half way');
  turn.tell({ type: 'user-message', text: 'Once' });
  turn.say('Whole.');
  await shows('Whole.');
  assert.deepEqual(await bubbles(), ['Once']);
  assert.equal(await answerText(page), 'Whole.');
});

test('a turn whose end was lost is loaded from history', async () => {
  await open();
  const turn = await begin();
  turn.say('Begun');
  await shows('Begun');
  const { conversation } = turn;
  conversation.keep('assistant', { type: 'text', text: 'Begun and ended.' });
  conversation.sealed();
  await shows('Begun and ended.');
  assert.equal(await page.locator('#stop').isHidden(), true);
  assert.deepEqual(await bubbles(), ['What now?']);
});

test('a queued message that begins the next turn is no longer shown as queued', async () => {
  await open();
  const turn = await begin('One');
  await send(page, 'Two');
  await page.locator('#queue li', { hasText: 'Two' }).waitFor();
  turn.end();
  await until(() => document.querySelectorAll('.turn').length === 2 && document.querySelector('#queue').hidden);
  assert.deepEqual(await bubbles(), ['One', 'Two']);
});

test('a message that cannot be queued goes back into the field', async () => {
  await open();
  const turn = await begin();
  server.obeys = () => 'the queue is full';
  await send(page, 'Too much');
  await page.locator('.toast').waitFor();
  assert.equal(await page.locator('#prompt').inputValue(), 'Too much');
  assert.deepEqual(await bubbles(), [turn.prompt]);
});

test('messages that were refused or never confirmed are put before what is being written, with their images', async () => {
  await open();
  server.obeys = ({ type }) => type !== 'chat.send';
  const image = (name) => ({ name, mimeType: 'image/gif', buffer: Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=', 'base64') });
  const attach = async (name, count) => {
    await page.locator('#attach-file').setInputFiles([image(name)]);
    await until((wanted) => document.querySelectorAll('#images li').length === wanted, count);
  };
  await attach('a.gif', 1);
  await send(page, 'A long message');
  await page.locator('#prompt').fill('x');
  await attach('b.gif', 1);
  server.cut();
  await page.locator('.toast', { hasText: 'may not have arrived' }).waitFor();
  assert.equal(await page.locator('#prompt').inputValue(), 'A long message\n\nx');
  assert.equal(await page.locator('#images li').count(), 2);

  server.obeys = () => true;
  await until(() => document.querySelector('#connection').textContent === '');
  const turn = await begin();
  server.obeys = ({ text }) => text !== 'Lost' && (text !== 'Refused' || 'the queue is full');
  for (const text of ['Lost', 'Queued', 'Refused']) await send(page, text);
  await page.locator('.toast', { hasText: 'the queue is full' }).waitFor();
  assert.equal(await page.locator('#prompt').inputValue(), 'Refused', 'that one alone');
  await page.locator('#queue li', { hasText: 'Queued' }).waitFor();
  server.cut();
  await page.locator('.toast', { hasText: 'may not have arrived' }).waitFor();
  assert.equal(await page.locator('#prompt').inputValue(), 'Lost\n\nRefused');
  turn.end();
});

test('of two new conversations begun quickly, the second one gets its own answer', async () => {
  await open();
  server.obeys = ({ type }) => type !== 'chat.send'; // the answers come late
  await send(page, 'First');
  await page.locator('.bubble', { hasText: 'First' }).waitFor();
  await page.locator('#new').click();
  await until(() => !document.querySelector('.bubble'));
  await send(page, 'Second');
  await page.locator('.bubble', { hasText: 'Second' }).waitFor();
  const [first, second] = commands('chat.send').map(({ conversationId }) => conversationId);
  const answer = (conversationId, text) => {
    for (const event of [{ type: 'user-message', text }, { type: 'text-delta', delta: `To ${text}.` }]) {
      server.broadcast({ type: 'chat.delta', event: { ...event, conversationId, turnId: text } });
    }
  };
  answer(first, 'First');
  server.broadcast({ type: 'chat.error', conversationId: first, message: 'too many turns' });
  answer(second, 'Second');
  await shows('To Second.');
  assert.equal(new URL(page.url()).hash, `#/c/${second}`);
  assert.deepEqual(await bubbles(), ['Second']);
});

test('what was sent in a conversation that is no longer open is given back there, unless it arrived', async () => {
  const [home, away] = [server.conversation(), server.conversation()];
  for (const [conversation, text] of [[home, 'Home'], [away, 'Away']]) conversation.begin(text).end();
  const go = async (text) => {
    await page.locator('#list a', { hasText: text }).click();
    await until((wanted) => document.querySelector('.bubble')?.textContent === wanted, text);
  };
  const sendAndGo = async (text) => {
    const sent = commanded('chat.send');
    await send(page, text);
    await sent;
    await go('Away');
  };
  const written = async () => {
    await go('Home');
    return page.locator('#prompt').inputValue();
  };
  await open(`/#/c/${home.id}`);
  await go('Home');
  server.obeys = ({ type }) => type !== 'chat.send'; // the answers come late
  await sendAndGo('Refused');
  server.broadcast({ type: 'chat.error', conversationId: home.id, message: 'no such model' });
  await page.locator('.toast', { hasText: 'Not sent in “Home”: no such model' }).waitFor();
  assert.equal(await page.locator('#prompt').inputValue(), '');
  assert.equal(await written(), 'Refused');

  await sendAndGo('Lost');
  server.cut();
  await page.locator('.toast', { hasText: 'Connection lost while sending in “Home”' }).waitFor();
  await until(() => document.querySelector('#connection').textContent === '');
  assert.equal(await written(), 'Lost');

  await sendAndGo('Arrived');
  const unsubscribed = commanded('chat.unsubscribe');
  home.begin('Arrived').end();
  assert.equal((await unsubscribed).conversationId, home.id);
  const back = commanded('chat.subscribe');
  server.cut();
  await back;
  assert.equal(await written(), '');
});

test('an edited message that cannot be sent, or is refused, can be sent again', async () => {
  await open();
  const turn = await begin('First');
  turn.tell({ type: 'turn-start', messageSeq: 1 });
  turn.end();
  await sealed();
  await page.locator('.user', { hasText: 'First' }).hover();
  await page.locator('.user .edit').click();
  await page.locator('.revision textarea').fill('Better');
  const other = turn.conversation.begin('By somebody else');
  await page.locator('.bubble', { hasText: 'By somebody else' }).waitFor();
  await page.locator('.revision button[type=submit]').click();
  await page.locator('.revision [role=alert]', { hasText: 'wait until the answer has ended' }).waitFor();
  assert.equal(await page.locator('.revision textarea').isEnabled(), true);
  other.end();
  await sealed();
  server.obeys = ({ type }) => type !== 'chat.retry' || 'not this one';
  await page.locator('.revision button[type=submit]').click();
  await page.locator('.toast', { hasText: 'not this one' }).waitFor();
  server.obeys = () => true;
  const retried = commanded('chat.retry');
  await page.locator('.revision button[type=submit]').click();
  assert.equal((await retried).message, 'Better');
});

test('an edited message that was answered while the connection was away is not sent again', async () => {
  await open();
  const turn = await begin('First');
  turn.tell({ type: 'turn-start', messageSeq: 1 });
  turn.end();
  await sealed();
  await page.locator('.user', { hasText: 'First' }).hover();
  await page.locator('.user .edit').click();
  await page.locator('.revision textarea').fill('Better');
  server.obeys = ({ type, message }) => {
    if (type !== 'chat.retry') return true;
    server.cut();
    const unseen = turn.conversation.begin(message);
    unseen.say('Two.');
    unseen.end();
    return false;
  };
  await page.locator('.revision button[type=submit]').click();
  await shows('Two.');
  await begin('Next'); // comes after what is sent again
  assert.equal(commands('chat.retry').length, 1);
  assert.equal(await page.locator('.toast').count(), 0);
});

test('what is being written into a form or an edited message is there after a look at another conversation', async () => {
  const away = server.conversation();
  away.begin('Away').end();
  await open();
  const first = await begin('Home');
  first.tell({ type: 'turn-start', messageSeq: 1 });
  first.end();
  await sealed();
  await page.locator('.user', { hasText: 'Home' }).hover();
  await page.locator('.user .edit').click();
  await page.locator('.revision textarea').fill('Better');
  const turn = await begin('Go');
  const call = { stepId: step(turn, 0), toolCallId: 'a', toolName: 'book' };
  turn.tell({ type: 'tool-call', ...call, input: {} });
  const fields = [{ name: 'who', kind: 'text' }, { name: 'lunch', kind: 'boolean' }, { name: 'room', kind: 'choice', options: [{ value: 'small' }, { value: 'large' }] }];
  turn.tell({ type: 'question-asked', ...call, questionId: 'q', asker: 'hotel', kind: 'form', message: 'Which?', fields });
  const other = { ...call, toolCallId: 'b', input: {} };
  turn.tell({ type: 'tool-call', ...other }, { type: 'approval-requested', ...other });
  const form = page.locator('.question');
  const reason = page.locator('.denial input');
  await reason.fill('Too dear');
  await form.locator('input:not([type=checkbox])').fill('Ann');
  await form.locator('[type=checkbox]').check();
  await form.locator('select').selectOption('1');

  const look = async () => {
    await page.locator('#list a', { hasText: 'Away' }).click();
    await until(() => document.querySelector('.bubble')?.textContent === 'Away');
    await page.locator('#list a', { hasText: 'Home' }).click();
    await form.waitFor();
  };
  await page.locator('.revision textarea').press('Alt+ArrowDown');
  assert.equal(await form.count(), 1, 'the keys move within the text');
  await look();
  assert.equal(await form.locator('input:not([type=checkbox])').inputValue(), 'Ann');
  assert.equal(await form.locator('[type=checkbox]').isChecked(), true);
  assert.equal(await form.locator('select').inputValue(), '1');
  assert.equal(await reason.inputValue(), 'Too dear');
  assert.equal(await page.locator('.revision textarea').inputValue(), 'Better');
  await page.locator('.revision button', { hasText: 'Cancel' }).click();
  await look();
  assert.equal(await page.locator('.revision').count(), 0);
  assert.deepEqual(page.wrongs, []);
});
