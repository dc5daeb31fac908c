// `useChat` of the AI SDK (versions 7, 6 and 5 from npm), with the binary and a provider on loopback.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { outlives } from './support/outlives.mjs';
import { VERSIONS, openChat, shown, textOf, until } from './support/chat.mjs';
import { LIMITED, TOKEN, tokenServer } from './support/token-server.mjs';

const stage = tokenServer(['gpt-5.5', ...[5, 6, 7].flatMap((ui) => [`limited-${ui}`, `failing-${ui}`])], { asksForDice: true });
const headers = { authorization: `Bearer ${TOKEN}` };
let chats = 0;
let provider;
let server;

beforeEach(() => {
  ({ provider, server } = stage);
});

const roll = { calls: [{ name: 'roll_dice', input: { sides: 6 } }] };
const names = (told) => told.map(({ type }) => type.replace('data-everturn-', ''));
const call = (message) => message.parts.find(({ type }) => type === 'dynamic-tool');
/** The response of the server's native API. */
const asked = async (path, more) => (await fetch(server.url + path, { headers, ...more })).json();

/** An answer that the test triggers. */
function later() {
  let say;
  provider.says(new Promise((resolve) => (say = resolve)));
  return say;
}

for (const version of VERSIONS) {
  const { ui } = version;
  const open = (more = {}, id = `chat / ${ui} ${(chats += 1)}`) => ({
    id,
    ...openChat(version, server.url, id, { headers, ...more }),
  });

  describe(`ai ${ui}`, () => {
    test('messages are answered, and the server keeps the history', async () => {
      const { chat, errors } = open();
      provider.says('Hello.', 'Hello again.');
      await chat.sendMessage({ text: 'hi' });
      await chat.sendMessage({ text: 'again' });
      assert.deepEqual(errors, []);
      assert.deepEqual(shown(chat), ['user: hi', 'assistant: Hello.', 'user: again', 'assistant: Hello again.']);
      assert.deepEqual(provider.requests[1].said.slice(-3), ['hi', 'Hello.', 'again']);
      const { turnId, conversationId } = chat.lastMessage.metadata;
      assert.equal(chat.lastMessage.id, turnId);
      assert.equal((await asked(`/conversations/${conversationId}`)).latestSeq, 4);
    });

    test('two provider failures are waited out, and the app is notified', async () => {
      const { chat, told } = open();
      provider.says(LIMITED, LIMITED, 'At last.');
      // A separate model, because a limited one admits few calls for a while.
      await chat.sendMessage({ text: 'hi' }, { body: { model: `limited-${ui}` } });
      assert.equal(textOf(chat.lastMessage), 'At last.');
      // Other turns on the same target may prolong a wait.
      assert.deepEqual([...new Set(names(told))], ['retry', 'retry-ended']);
      assert.deepEqual([told[0].data.code, provider.requests.length], ['429', 3]);
      assert.deepEqual(chat.lastMessage.parts.map(({ type }) => type), ['step-start', 'text']);
    });

    test('an answer is regenerated, and a message is edited', async () => {
      const { chat } = open();
      provider.says('One.', 'Two.', 'Three.', 'Four.');
      await chat.sendMessage({ text: 'a' });
      await chat.sendMessage({ text: 'b' });
      await chat.regenerate();
      assert.deepEqual(shown(chat).slice(2), ['user: b', 'assistant: Three.']);
      assert.deepEqual(provider.requests[2].said.slice(-3), ['a', 'One.', 'b']);
      await chat.sendMessage({ text: 'A', messageId: chat.messages[0].id });
      assert.deepEqual(shown(chat), ['user: A', 'assistant: Four.']);
      assert.deepEqual(provider.requests[3].said.at(-1), 'A');
      assert.ok(!provider.requests[3].said.includes('b'));
    });

    test('a page that is opened in the middle of a turn follows it from its start', async () => {
      const { chat, id } = open();
      const say = later();
      provider.says('And more.');
      const first = chat.sendMessage({ text: 'hi' });
      await until(() => provider.requests.length === 1);
      const page = open({ messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }] }] }, id);
      const resumed = page.chat.resumeStream();
      await until(() => page.chat.lastMessage.role === 'assistant');
      say('Hello.');
      await Promise.all([first, resumed]);
      assert.deepEqual(shown(page.chat), ['user: hi', 'assistant: Hello.']);
      assert.equal(page.chat.lastMessage.id, chat.lastMessage.id);
      await page.chat.resumeStream();
      assert.deepEqual([page.chat.status, page.errors.length], ['ready', 0], 'nothing runs any more');
      await page.chat.sendMessage({ text: 'more' });
      assert.equal(textOf(page.chat.lastMessage), 'And more.');
    });

    test('disconnecting does not stop a turn, the stop call does', async () => {
      const { chat, id } = open();
      later();
      const first = chat.sendMessage({ text: 'hi' });
      await until(() => provider.requests.length === 1 && chat.lastMessage.role === 'assistant');
      await chat.stop();
      await first;
      const path = `/api/chat/${encodeURIComponent(id)}`;
      const rest = open({}, id);
      const resumed = rest.chat.resumeStream();
      await until(() => rest.chat.lastMessage?.role === 'assistant', 'it still runs');
      const { abortedTurn } = await asked(`${path}/stop`, { method: 'POST' });
      assert.equal(abortedTurn, true);
      await resumed;
      assert.deepEqual([rest.chat.status, rest.errors.length], ['ready', 0]);
      assert.equal((await fetch(`${server.url}${path}/stream`, { headers })).status, 204);
    });

    test('a message to a running turn is queued', async () => {
      const { chat, told, id } = open();
      const say = later();
      const first = chat.sendMessage({ text: 'hi' });
      await until(() => provider.requests.length === 1);
      const other = open({}, id);
      await other.chat.sendMessage({ text: 'and then?' });
      assert.deepEqual(names(other.told), ['queued']);
      assert.deepEqual([other.chat.status, shown(other.chat)], ['ready', ['user: and then?']]);
      provider.says('Then this.');
      say('Hello.');
      await first;
      assert.ok(names(told).includes('queue-changed'));
      await until(() => provider.requests.length === 2);
      assert.equal(provider.requests[1].said.at(-1), 'and then?');
    });

    test('errors are shown as text', async () => {
      const { chat, errors } = open();
      provider.says(LIMITED, LIMITED, LIMITED, LIMITED);
      await chat.sendMessage({ text: 'hi' }, { body: { model: `failing-${ui}` } });
      assert.equal(chat.status, 'error');
      assert.match(errors[0].message, /^gave up after \d+ retries.*Slow down/s);
      provider.says('Better.');
      await chat.regenerate({ body: { model: 'gpt-5.5' } });
      assert.deepEqual(shown(chat), ['user: hi', 'assistant: Better.']);
      const unknown = open();
      await unknown.chat.sendMessage({ text: 'hi' }, { body: { model: 'gpt-9' } });
      assert.match(unknown.errors[0].message, /^unknown model "gpt-9"; known models: main\/gpt-5.5,/);
      const stranger = open({ headers: {} });
      await stranger.chat.sendMessage({ text: 'hi' });
      assert.match(stranger.errors[0].message, /^this server asks for its token/);
    });

    test('a truncated answer is withdrawn, or a remark says that it starts again', async () => {
      const { chat, told, errors } = open();
      provider.says({ breaks: 'Once upon' }, 'Once upon a time.');
      const everturn = { retry: { afterContent: 'rewind' } };
      await chat.sendMessage({ text: 'hi' }, { body: { everturn } });
      assert.deepEqual(errors, []);
      assert.ok(names(told).includes('step-rewound'));
      const whole = ui === 7 ? /^Once upon a time\.$/ : /^Once upon\[The answer broke off here.*\]Once upon a time\.$/;
      assert.match(textOf(chat.lastMessage), whole);
    });

    if (ui === 5) {
      test('a call that needs approval waits, and is allowed with the native API', async () => {
        const { chat, told } = open();
        provider.says(roll, 'A good throw.');
        const first = chat.sendMessage({ text: 'roll' });
        await until(() => names(told).includes('approval-requested'));
        const { conversationId, turnId } = chat.lastMessage.metadata;
        const { stepId, toolCallId } = told.at(-1).data;
        const body = JSON.stringify({ turnId, stepId, toolCallId, verdict: 'allowed' });
        const json = { ...headers, 'content-type': 'application/json' };
        await asked(`/conversations/${conversationId}/approvals`, { method: 'POST', headers: json, body });
        await first;
        assert.equal(call(chat.lastMessage).state, 'output-available');
        assert.equal(textOf(chat.lastMessage), 'A good throw.');
      });
      return;
    }

    test('a tool runs when it is allowed, by a second request', async () => {
      const { chat, errors } = open();
      provider.says(roll, 'A good throw.');
      await chat.sendMessage({ text: 'roll' });
      assert.deepEqual([chat.status, call(chat.lastMessage).state], ['ready', 'approval-requested']);
      await chat.addToolApprovalResponse({ id: call(chat.lastMessage).approval.id, approved: true });
      await until(() => textOf(chat.lastMessage) !== '' && chat.status === 'ready');
      assert.deepEqual(errors, []);
      assert.equal(chat.messages.length, 2);
      assert.equal(call(chat.lastMessage).state, 'output-available');
      assert.match(call(chat.lastMessage).output, /^\d$/);
      assert.deepEqual(shown(chat), ['user: roll', 'assistant: A good throw.']);
      const { chunks } = await asked(`/conversations/${chat.lastMessage.metadata.conversationId}`);
      const [{ verdict, via }] = chunks.find(({ chunk }) => chunk.type === 'tool-result').chunk.decisions;
      assert.deepEqual([verdict, via], ['allowed', 'ai-sdk']);
    });

    test('a tool does not run when it is denied, and the model is told why', async () => {
      const { chat } = open();
      provider.says(roll, 'As you like.');
      await chat.sendMessage({ text: 'roll' });
      const { id } = call(chat.lastMessage).approval;
      await chat.addToolApprovalResponse({ id, approved: false, reason: 'no games' });
      await until(() => textOf(chat.lastMessage) !== '' && chat.status === 'ready');
      assert.equal(call(chat.lastMessage).state, 'output-denied');
      assert.match(provider.requests[1].said.at(-1), /no games/);
    });

    test('a page that is opened while a call waits shows it, and answers it', async () => {
      const { chat, id } = open();
      provider.says(roll, 'Yes.');
      await chat.sendMessage({ text: 'roll' });
      const page = open({ messages: [chat.messages[0]] }, id);
      await page.chat.resumeStream();
      assert.deepEqual([page.chat.status, call(page.chat.lastMessage).state], ['ready', 'approval-requested']);
      await page.chat.addToolApprovalResponse({ id: call(page.chat.lastMessage).approval.id, approved: true });
      await until(() => textOf(page.chat.lastMessage) === 'Yes.' && page.chat.status === 'ready');
      // The first page's answer is late. It is told so, and does not repeat it for ever.
      await chat.addToolApprovalResponse({ id: call(chat.lastMessage).approval.id, approved: true });
      await until(() => call(chat.lastMessage).state === 'output-error' && chat.status === 'ready');
      assert.equal(provider.requests.length, 2);
    });
  });
}

test('a turn outlives the server, and its page finds it again', () =>
  outlives(stage, (url) => openChat(VERSIONS[0], url, 'survives', { headers })));
