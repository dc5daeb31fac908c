// AG-UI's client in both versions, and CopilotKit's, with the binary and a provider on loopback.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { HttpAgent } from '@ag-ui/client';
import { CopilotKitCore } from '@copilotkit/core';
import { HttpAgent as HttpAgent0 } from 'ag-ui-0';
import { until } from './support/chat.mjs';
import { LIMITED, TOKEN, tokenServer } from './support/token-server.mjs';

const LINES = [
  { line: '1.0', Agent: HttpAgent },
  { line: '0.0.59', Agent: HttpAgent0 },
];

const stage = tokenServer(['gpt-5.5', ...[0, 1].flatMap((line) => [`limited-${line}`, `failing-${line}`])], { asksForDice: true });
const headers = { authorization: `Bearer ${TOKEN}` };
const roll = { calls: [{ name: 'roll_dice', input: { sides: 6 } }] };
let threads = 0;
let provider;
let server;
let warnings;
const { warn, error } = console;

beforeEach(() => {
  ({ provider, server } = stage);
});

after(() => {
  Object.assign(console, { warn, error });
});

beforeEach(() => {
  warnings = [];
  console.warn = (...words) => warnings.push(words.join(' '));
  // The client also reports failed runs here.
  console.error = () => {};
});

/** The response of the server's native API. */
const asked = async (path, more) => (await fetch(server.url + path, { headers, ...more })).json();
const shown = (messages) => messages.filter(({ content }) => content).map(({ role, content }) => `${role}: ${content}`);

/** An answer that the test triggers. */
function later() {
  let say;
  provider.says(new Promise((resolve) => (say = resolve)));
  return say;
}

LINES.forEach(({ line, Agent }, at) => {
  const open = (threadId = `thread ${line}/${(threads += 1)}`, initialMessages = []) => {
    const agent = new Agent({ url: `${server.url}/ag-ui`, headers, threadId, initialMessages });
    const custom = [];
    agent.subscribe({ onCustomEvent: ({ event }) => void custom.push(event) });
    return { agent, custom, threadId };
  };
  const say = (agent, content) => agent.addMessage({ id: `u${agent.messages.length}`, role: 'user', content });
  const run = (agent, everturn) => agent.runAgent(everturn ? { forwardedProps: { everturn } } : {});

  describe(`@ag-ui/client ${line}`, () => {
    test('messages are answered, and the server keeps the history', async () => {
      const { agent } = open();
      provider.says('Hello.', 'Hello again.');
      say(agent, 'hi');
      await run(agent);
      say(agent, 'again');
      await run(agent);
      assert.deepEqual(shown(agent.messages), ['user: hi', 'assistant: Hello.', 'user: again', 'assistant: Hello again.']);
      assert.deepEqual(provider.requests[1].said.slice(-3), ['hi', 'Hello.', 'again']);
      assert.deepEqual(warnings, []);
    });

    test('two provider failures are waited out, and the app is notified', async () => {
      const { agent, custom } = open();
      provider.says(LIMITED, LIMITED, 'At last.');
      say(agent, 'hi');
      await run(agent, { model: `limited-${at}` });
      assert.deepEqual(shown(agent.messages), ['user: hi', 'assistant: At last.']);
      assert.deepEqual([...new Set(custom.map(({ name }) => name))], ['everturn.provider-retry', 'everturn.retry-ended']);
      assert.deepEqual([custom[0].value.code, provider.requests.length], ['429', 3]);
      assert.deepEqual(warnings, []);
    });

    test('a call that needs approval interrupts the run, and another run answers', async () => {
      for (const approved of [true, false]) {
        const { agent } = open();
        provider.says(roll, 'Well.');
        say(agent, 'roll');
        let outcome;
        await agent.runAgent({}, { onRunFinishedEvent: ({ event }) => void (outcome = event.outcome) });
        const [interrupt] = outcome.interrupts;
        assert.match(interrupt.message, /^roll_dice needs approval/);
        const payload = { approved, reason: 'because' };
        await agent.runAgent({ resume: [{ interruptId: interrupt.id, status: 'resolved', payload }] });
        const called = agent.messages.find(({ toolCalls }) => toolCalls);
        const result = agent.messages.find(({ role }) => role === 'tool');
        assert.equal(result.toolCallId, called.toolCalls[0].id);
        assert.match(result.content, approved ? /^\d$/ : /because/);
        assert.equal(agent.messages.at(-1).content, 'Well.');
        assert.deepEqual(warnings, []);
      }
    });

    test('a message can come with the answer to an interrupt', async () => {
      const { agent } = open();
      provider.says(roll, 'Well.');
      say(agent, 'roll');
      let outcome;
      await agent.runAgent({}, { onRunFinishedEvent: ({ event }) => void (outcome = event.outcome) });
      say(agent, 'do something else');
      const [{ id: interruptId }] = outcome.interrupts;
      await agent.runAgent({ resume: [{ interruptId, status: 'resolved', payload: { approved: false } }] });
      assert.match(provider.requests[1].said.at(-1), /do something else$/);
      assert.equal(agent.messages.at(-1).content, 'Well.');
      assert.deepEqual(warnings, []);
    });

    test('a message of a client that has missed some is added', async () => {
      const { agent, threadId } = open();
      provider.says('One.', 'Two.', 'Three.');
      say(agent, 'a');
      await run(agent);
      const late = open(threadId, structuredClone(agent.messages));
      say(agent, 'b');
      await run(agent);
      say(late.agent, 'c');
      await run(late.agent);
      assert.deepEqual(provider.requests[2].said.slice(-5), ['a', 'One.', 'b', 'Two.', 'c']);
    });

    test('an answer is regenerated', async () => {
      const { agent } = open();
      provider.says('One.', 'Two.', 'Three.');
      say(agent, 'a');
      await run(agent);
      say(agent, 'b');
      await run(agent);
      agent.setMessages(agent.messages.slice(0, 3));
      await run(agent);
      assert.deepEqual(shown(agent.messages).slice(2), ['user: b', 'assistant: Three.']);
      assert.deepEqual(provider.requests[2].said.slice(-3), ['a', 'One.', 'b']);
    });

    test('a truncated answer is withdrawn', async () => {
      const { agent, custom } = open();
      provider.says('Hello.', { breaks: 'Once upon' }, 'Once upon a time.');
      say(agent, 'hi');
      await run(agent);
      say(agent, 'a tale');
      await run(agent, { retry: { afterContent: 'rewind' } });
      assert.ok(custom.some(({ name }) => name === 'everturn.step-rewound'));
      const whole = ['user: hi', 'assistant: Hello.', 'user: a tale', 'assistant: Once upon a time.'];
      assert.deepEqual(shown(agent.messages), whole);
      assert.deepEqual(warnings, []);
    });

    test('disconnecting does not stop a turn, the stop call does; a message to a running turn is queued', async () => {
      const { agent, threadId } = open();
      later();
      say(agent, 'hi');
      const running = run(agent).catch((failure) => failure);
      await until(() => provider.requests.length === 1);
      const other = open(threadId);
      say(other.agent, 'and then?');
      await run(other.agent);
      assert.deepEqual(other.custom.map(({ name }) => name), ['everturn.queued']);
      agent.abortRun();
      await running;
      provider.says('Then this.');
      const { abortedTurn } = await asked(`/ag-ui/${encodeURIComponent(threadId)}/stop`, { method: 'POST' });
      assert.equal(abortedTurn, true);
      await until(() => provider.requests.length === 2);
      assert.match(provider.requests[1].said.at(-1), /and then\?$/);
    });

    test('a stopped run ends successfully, a failed one does not', async () => {
      const { agent, threadId } = open();
      later();
      say(agent, 'hi');
      let finished;
      const running = agent.runAgent({}, { onRunFinishedEvent: ({ event }) => void (finished = event) });
      await until(() => provider.requests.length === 1);
      await asked(`/ag-ui/${encodeURIComponent(threadId)}/stop`, { method: 'POST' });
      await running;
      assert.equal(finished.outcome?.type, at === 0 ? 'cancelled' : undefined);
      const failing = open();
      provider.says(LIMITED, LIMITED, LIMITED, LIMITED);
      say(failing.agent, 'hi');
      let told;
      const failed = failing.agent.runAgent(
        { forwardedProps: { everturn: { model: `failing-${at}` } } },
        { onRunErrorEvent: ({ event }) => void (told = event) },
      );
      await failed.catch(() => {});
      assert.match(told.message, /^gave up after \d+ retries.*Slow down/s);
      assert.equal(told.code, 'rate_limited');
      const unknown = open();
      say(unknown.agent, 'hi');
      await assert.rejects(run(unknown.agent, { model: 'gpt-9' }), /HTTP 400: unknown model "gpt-9"/);
    });
  });
});

describe('CopilotKit', () => {
  let core;
  before(() => {
    globalThis.window = { location: { origin: server.url }, addEventListener() {}, removeEventListener() {} };
  });
  after(() => {
    delete globalThis.window;
  });

  /** A page connected to a thread. */
  async function page(threadId, more = {}) {
    core = new CopilotKitCore({ runtimeUrl: `${server.url}/copilotkit`, headers, ...more });
    await until(() => core.getAgent('default'), 'there is no agent');
    const agent = core.getAgent('default');
    agent.threadId = threadId;
    return agent;
  }

  test('an agent is found, runs, and keeps its thread across a reload', async () => {
    const agent = await page('copilot');
    provider.says('Hello.');
    agent.addMessage({ id: 'u', role: 'user', content: 'hi' });
    await core.runAgent({ agent });
    assert.deepEqual(shown(agent.messages), ['user: hi', 'assistant: Hello.']);
    const reloaded = await page('copilot');
    await core.connectAgent({ agent: reloaded });
    assert.deepEqual(shown(reloaded.messages), ['user: hi', 'assistant: Hello.']);
    assert.equal(reloaded.messages[1].id, agent.messages[1].id);
  });

  test('one endpoint serves an agent, too', async () => {
    const single = { runtimeTransport: 'single' };
    const agent = await page('single', single);
    provider.says(LIMITED, 'Hello.');
    agent.addMessage({ id: 'u', role: 'user', content: 'hi' });
    await core.runAgent({ agent });
    assert.deepEqual(shown(agent.messages), ['user: hi', 'assistant: Hello.']);
    const reloaded = await page('single', single);
    await core.connectAgent({ agent: reloaded });
    assert.deepEqual(shown(reloaded.messages), ['user: hi', 'assistant: Hello.']);
    later();
    reloaded.addMessage({ id: 'u2', role: 'user', content: 'more' });
    const stopped = core.runAgent({ agent: reloaded });
    await until(() => provider.requests.length === 3);
    core.stopAgent({ agent: reloaded });
    await stopped;
    await until(async () => (await asked('/conversations/single/metrics')).turns.at(-1).reason === 'aborted');
    assert.equal(core.runtimeTransport, 'single');
  });

  test('a page that is opened in the middle of a turn follows it, and stops the next one', async () => {
    const agent = await page('middle');
    const core1 = core;
    const sayLater = later();
    agent.addMessage({ id: 'u', role: 'user', content: 'hi' });
    const running = core1.runAgent({ agent });
    await until(() => provider.requests.length === 1);
    const reloaded = await page('middle');
    const connected = core.connectAgent({ agent: reloaded });
    await until(() => reloaded.messages.length === 1);
    sayLater('Hello.');
    await Promise.all([running, connected]);
    assert.deepEqual(shown(reloaded.messages), ['user: hi', 'assistant: Hello.']);
    later();
    reloaded.addMessage({ id: 'u2', role: 'user', content: 'more' });
    const stopped = core.runAgent({ agent: reloaded });
    await until(() => provider.requests.length === 2);
    core.stopAgent({ agent: reloaded });
    await stopped;
    await until(async () => (await asked('/conversations/middle/metrics')).turns.at(-1).reason === 'aborted');
  });

  test('a page that is opened while a call waits shows it, and answers it', async () => {
    const agent = await page('approval');
    provider.says(roll, 'A good throw.');
    agent.addMessage({ id: 'u', role: 'user', content: 'roll' });
    await core.runAgent({ agent });
    const reloaded = await page('approval');
    await core.connectAgent({ agent: reloaded });
    const [interrupt] = reloaded.pendingInterrupts;
    const resume = [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: true } }];
    await reloaded.runAgent({ resume });
    assert.deepEqual(reloaded.messages.map(({ role }) => role), ['user', 'assistant', 'tool', 'assistant']);
    assert.equal(reloaded.messages.at(-1).content, 'A good throw.');
  });
});
