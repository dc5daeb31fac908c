// `useChat` over a WebSocket: the AI SDK's `WebSocketChatTransport` with the binary and a loopback provider.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { WebSocketChatTransport } from 'ai7';
import { WebSocket } from 'undici';
import { outlives } from './support/outlives.mjs';
import { VERSIONS, openChat, shown, textOf, until } from './support/chat.mjs';
import { LIMITED, TOKEN, tokenServer } from './support/token-server.mjs';

const stage = tokenServer(['gpt-5.5', 'limited', 'failing'], { asksForDice: true });
const headers = { authorization: `Bearer ${TOKEN}` };
const roll = { calls: [{ name: 'roll_dice', input: { sides: 6 } }] };
const transports = [];
let chats = 0;
let provider;
let server;

beforeEach(() => {
  ({ provider, server } = stage);
});

afterEach(() => {
  for (const transport of transports.splice(0)) transport.close();
});

const bearer = (token) => ['everturn', `bearer.${Buffer.from(token).toString('base64url')}`];
const names = (told) => told.map(({ type }) => type.replace('data-everturn-', ''));
const call = (message) => message.parts.find(({ type }) => type === 'dynamic-tool');
const turns = async (id) =>
  (await (await fetch(`${server.url}/conversations/${id}/metrics`, { headers })).json()).turns;
const stopTurn = (id) => fetch(`${server.url}/api/chat/${id}/stop`, { method: 'POST', headers });

/** A transport that counts the sockets it has opened. */
function connect(url = server.url, protocols = bearer(TOKEN)) {
  const opened = { count: 0 };
  class Counted extends WebSocket {
    constructor(...how) {
      super(...how);
      opened.count += 1;
    }
  }
  const transport = new WebSocketChatTransport({ url: `${url}/api/chat/ws`, protocols, webSocket: Counted });
  transports.push(transport);
  return { transport, opened };
}

function open(transport, more = {}, id = `socket-${(chats += 1)}`) {
  return { id, ...openChat(VERSIONS[0], server.url, id, { transport, ...more }) };
}

/** An answer that the test triggers. */
function later() {
  let say;
  provider.says(new Promise((resolve) => (say = resolve)));
  return say;
}

test('chats share a socket, and each gets its own answers', async () => {
  const { transport, opened } = connect();
  const [one, two] = [open(transport), open(transport)];
  const sayOne = later();
  const first = one.chat.sendMessage({ text: 'first' });
  await until(() => provider.requests.length === 1);
  const sayTwo = later();
  const second = two.chat.sendMessage({ text: 'second' });
  await until(() => provider.requests.length === 2);
  sayTwo('Two.');
  await second;
  assert.deepEqual([two.chat.status, shown(two.chat)], ['ready', ['user: second', 'assistant: Two.']]);
  assert.notEqual(one.chat.status, 'ready');
  sayOne('One.');
  await first;
  provider.says('More.');
  await one.chat.sendMessage({ text: 'and?' });
  assert.deepEqual(shown(one.chat), ['user: first', 'assistant: One.', 'user: and?', 'assistant: More.']);
  assert.deepEqual(provider.requests[2].said.slice(-3), ['first', 'One.', 'and?']);
  assert.deepEqual([one.errors, two.errors, opened.count], [[], [], 1]);
  const { turnId } = one.chat.lastMessage.metadata;
  assert.equal(one.chat.lastMessage.id, turnId);
});

test('two provider failures are waited out, and the app is informed', async () => {
  const { chat, told, errors } = open(connect().transport);
  provider.says(LIMITED, LIMITED, 'At last.');
  await chat.sendMessage({ text: 'hi' }, { body: { model: 'limited' } });
  assert.deepEqual(errors, []);
  assert.equal(textOf(chat.lastMessage), 'At last.');
  assert.deepEqual([...new Set(names(told))], ['retry', 'retry-ended']);
  assert.deepEqual([told[0].data.code, provider.requests.length], ['429', 3]);
});

test('a tool runs if it is allowed, and not if it is denied', async () => {
  const { transport, opened } = connect();
  for (const [approved, state] of [
    [true, 'output-available'],
    [false, 'output-denied'],
  ]) {
    const { chat, errors } = open(transport);
    provider.says(roll, 'As you like.');
    await chat.sendMessage({ text: 'roll' });
    assert.deepEqual([chat.status, call(chat.lastMessage).state], ['ready', 'approval-requested']);
    await chat.addToolApprovalResponse({ id: call(chat.lastMessage).approval.id, approved });
    await until(() => textOf(chat.lastMessage) === 'As you like.' && chat.status === 'ready');
    assert.deepEqual([errors, chat.messages.length, call(chat.lastMessage).state], [[], 2, state]);
  }
  assert.equal(opened.count, 1);
});

test('an answer is regenerated, and a message is edited', async () => {
  const { chat } = open(connect().transport);
  provider.says('One.', 'Two.', 'Three.', 'Four.');
  await chat.sendMessage({ text: 'a' });
  await chat.sendMessage({ text: 'b' });
  await chat.regenerate();
  assert.deepEqual(shown(chat).slice(2), ['user: b', 'assistant: Three.']);
  await chat.sendMessage({ text: 'A', messageId: chat.messages[0].id });
  assert.deepEqual(shown(chat), ['user: A', 'assistant: Four.']);
});

test('an interrupted answer is withdrawn', async () => {
  const { chat, told, errors } = open(connect().transport);
  provider.says({ breaks: 'Once upon' }, 'Once upon a time.');
  await chat.sendMessage({ text: 'hi' }, { body: { everturn: { retry: { afterContent: 'rewind' } } } });
  assert.deepEqual(errors, []);
  assert.ok(names(told).includes('step-rewound'));
  assert.equal(textOf(chat.lastMessage), 'Once upon a time.');
});

test('aborting an answer leaves its turn running, and it can be resumed from the start', async () => {
  const { transport, opened } = connect();
  const { chat, id } = open(transport);
  const say = later();
  const asking = chat.sendMessage({ text: 'hi' });
  await until(() => chat.messages.length === 2);
  await chat.stop();
  await asking;
  assert.equal(chat.status, 'ready');
  assert.deepEqual(await turns(id), []);
  // Like a reloaded page.
  const page = open(transport, { messages: [chat.messages[0]] }, id);
  const resumed = page.chat.resumeStream();
  await until(() => page.chat.messages.length === 2);
  say('Hello.');
  await resumed;
  assert.deepEqual(shown(page.chat), ['user: hi', 'assistant: Hello.']);
  assert.equal(page.chat.lastMessage.id, chat.lastMessage.id);
  assert.deepEqual(shown(chat), ['user: hi', 'assistant: '], 'it was aborted');
  await page.chat.resumeStream();
  assert.deepEqual([page.chat.status, page.chat.messages.length, opened.count], ['ready', 2, 1]);
});

test('a stopped turn is reported to its client', async () => {
  const { chat, id } = open(connect().transport);
  later();
  const asking = chat.sendMessage({ text: 'hi' });
  await until(() => provider.requests.length === 1);
  await stopTurn(id);
  await asking;
  assert.equal(chat.status, 'ready');
  assert.equal((await turns(id)).at(-1).reason, 'aborted');
});

test('errors have a message and do not affect other requests', async () => {
  const { transport, opened } = connect();
  const { chat, errors } = open(transport);
  provider.says(LIMITED, LIMITED, LIMITED, LIMITED);
  await chat.sendMessage({ text: 'hi' }, { body: { model: 'failing' } });
  assert.equal(chat.status, 'error');
  assert.match(errors[0].message, /^gave up after \d+ retries.*Slow down/s);
  const say = later();
  const other = open(transport);
  const asking = other.chat.sendMessage({ text: 'hi' });
  await until(() => provider.requests.length === 5);
  const unknown = open(transport);
  await unknown.chat.sendMessage({ text: 'hi' }, { body: { model: 'gpt-9' } });
  assert.match(unknown.errors[0].message, /^unknown model "gpt-9"; known models: main\/gpt-5.5,/);
  say('Hello.');
  await asking;
  assert.deepEqual([other.errors, shown(other.chat), opened.count], [[], ['user: hi', 'assistant: Hello.'], 1]);
});

test('a socket needs the token', async () => {
  for (const protocols of [[], bearer('wrong')]) {
    const { chat, errors } = open(connect(server.url, protocols).transport);
    await chat.sendMessage({ text: 'hi' });
    assert.equal(chat.status, 'error');
    assert.match(errors[0].message, /connection failed/);
  }
  assert.equal(provider.requests.length, 0);
});

test('a turn outlives the server, and its page reconnects to it', () =>
  outlives(stage, (url) => open(connect(url).transport, {}, 'survives')));
