// Streamed turns with a tool call through an independent model server, @copilotkit/aimock on loopback, with each of its
// APIs. Its journal records the requests.
import assert from 'node:assert/strict';
import { createServer, request as ask } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';
import { startServer } from './support/binary.mjs';

const KEY = 'not-a-real-key';
const THROW = { sides: 6, count: 2 };
const CALM = ['user-message', 'turn-start'];
// A wait is published before it begins, and its end when the provider is called again.
const RETRY = ['provider-retry', 'status'];
const ANSWER = [
  'tool-call',
  'usage',
  'step-complete',
  'tool-result',
  'text-delta',
  'usage',
  'step-complete',
  'done',
  'turn-sealed',
];

/** The keys of one provider. */
const KEYS = ['not-a-real-key-1', 'not-a-real-key-2', 'not-a-real-key-3'];
/** Their targets, as named in events. */
const TARGETS = ['many/gpt-5.5', 'many#2/gpt-5.5', 'many#3/gpt-5.5'];

const config = (url, observed) => `
[retry]
schedule = "exponential"
base_ms = 20
jitter = 0.0

[tools]
dice = true

[[provider]]
name = "chat"
kind = "openai-chat"
base_url = "${url}/v1"
api_key = "${KEY}"
models = ["gpt-5.5"]

[[provider]]
name = "responses"
kind = "openai-responses"
base_url = "${url}/v1"
api_key = "${KEY}"
models = ["gpt-5.5"]

[[provider]]
name = "messages"
kind = "anthropic"
base_url = "${url}/v1"
api_key = "${KEY}"
models = ["claude-sonnet-4-5"]

[[provider]]
name = "gemini"
kind = "gemini"
base_url = "${url}/v1beta"
api_key = "${KEY}"
models = ["gemini-3.8-flash"]

[[provider]]
name = "many"
kind = "openai-chat"
base_url = "${observed}/v1"
api_key = ${JSON.stringify(KEYS)}
models = ["gpt-5.5"]

[[route]]
name = "overloaded"
targets = ["messages/claude-sonnet-4-5", "chat/gpt-5.5"]
schedule = "interactive"

[[route]]
name = "limited"
targets = ["responses/gpt-5.5", "chat/gpt-5.5"]
schedule = "interactive"
`;

/** Each API from aimock's point of view. It journals everything in the format of Chat Completions. */
const DIALECTS = [
  { model: 'chat/gpt-5.5', path: '/v1/chat/completions', key: 'authorization' },
  { model: 'responses/gpt-5.5', path: '/v1/responses', key: 'authorization' },
  { model: 'messages/claude-sonnet-4-5', path: '/v1/messages', key: 'x-api-key', version: '2023-06-01' },
  {
    model: 'gemini/gemini-3.8-flash',
    path: '/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse',
    key: 'x-goog-api-key',
    // It journals this API's own `parameters` dialect, and not the JSON Schema beside it.
    schema: 'unseen',
    result: (output) => JSON.stringify({ output }),
  },
];

let folder;
let mock;
let observer;
let server;
/** The key of each request received by the provider with several keys. aimock hides keys in its journal. */
let keys = [];

/** A server that passes each request on to aimock unchanged. */
async function observe() {
  const passing = createServer((request, response) => {
    keys.push(request.headers.authorization.replace('Bearer ', ''));
    const { method, headers } = request;
    const onward = ask(new URL(request.url, mock.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  await new Promise((resolve) => passing.listen(0, '127.0.0.1', resolve));
  return passing;
}

before(async () => {
  mock = await LLMock.create({ host: '127.0.0.1', port: 0, logLevel: 'silent' });
  observer = await observe();
  folder = await mkdtemp(join(tmpdir(), 'everturn-aimock-'));
  const path = join(folder, 'config.toml');
  await writeFile(path, config(mock.url, `http://127.0.0.1:${observer.address().port}`));
  server = await startServer(['--config', path]);
});

after(async () => {
  await server?.stop();
  observer?.close();
  await mock?.stop();
  if (folder) await rm(folder, { recursive: true });
});

beforeEach(() => {
  const usage = (input, output) => ({
    usage: { prompt_tokens: input, completion_tokens: output, input_tokens: input, output_tokens: output },
  });
  const call = { id: 'call_1', name: 'roll_dice', arguments: JSON.stringify(THROW) };
  mock.reset();
  keys = [];
  mock.on({ userMessage: 'Roll', hasToolResult: false }, { toolCalls: [call], ...usage(11, 7) });
  // A pause before each piece, as from a real model, because text that arrives at once is published as one event.
  const answer = { content: 'They fell off the table.', ...usage(23, 5) };
  mock.on({ userMessage: 'Roll', hasToolResult: true }, answer, { latency: 100 });
});

/** Runs one turn and reads its events as they are streamed. */
async function turn(model) {
  const response = await fetch(`${server.url}/chat?extensions=true`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message: 'Roll two dice.', model }),
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type'), /^application\/x-ndjson/);
  const lines = (await response.text()).trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}

/** The event types in order, with repetitions collapsed. */
const order = (events) => events.map(({ type }) => type).filter((type, at, all) => type !== all[at - 1]);
const only = (events, type) => events.filter((event) => event.type === type);

function assertAnswered(events) {
  const [call] = only(events, 'tool-call');
  assert.deepEqual([call.toolName, call.toolCallId, call.input], ['roll_dice', 'call_1', THROW]);
  const [result] = only(events, 'tool-result');
  assert.deepEqual([result.toolCallId, result.isError], ['call_1', false]);
  assert.match(result.content, /^[1-6], [1-6]$/);
  const text = only(events, 'text-delta').map(({ delta }) => delta);
  assert.equal(text.join(''), 'They fell off the table.');
  assert.ok(text.length > 1, 'the text is streamed');
  const [done] = only(events, 'done');
  assert.equal(done.reason, 'stop');
  assert.deepEqual(done.usage, { inputTokens: 34, outputTokens: 12 });
  assert.equal(done.contextSize, 28);
}

function assertWellFormed({ method, path, headers, body }, dialect) {
  assert.deepEqual([method, path], ['POST', dialect.path]);
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(headers['anthropic-version'], dialect.version);
  assert.ok(headers[dialect.key], 'the key is sent');
  assert.equal(body.stream, true);
  assert.equal(`${dialect.model.split('/')[0]}/${body.model}`, dialect.model);
  assert.deepEqual(body.tools.map((tool) => tool.function.name), ['roll_dice']);
  assert.equal(body.tools[0].function.parameters?.type ?? 'unseen', dialect.schema ?? 'object');
}

for (const dialect of DIALECTS) {
  test(`a turn with a tool call goes through ${dialect.path}`, async () => {
    const events = await turn(dialect.model);
    assert.deepEqual(order(events), [...CALM, ...ANSWER]);
    assertAnswered(events);

    const asked = mock.getRequests();
    assert.deepEqual(asked.map(({ response }) => response.status), [200, 200]);
    for (const request of asked) assertWellFormed(request, dialect);
    const [first, second] = asked.map(({ body }) => body.messages);
    assert.deepEqual(first, [{ role: 'user', content: 'Roll two dice.' }]);
    const [user, assistant, tool] = second;
    assert.equal(second.length, 3);
    assert.deepEqual(user, first[0]);
    const [{ id, function: called }] = assistant.tool_calls;
    assert.deepEqual([assistant.role, assistant.tool_calls.length, id], ['assistant', 1, 'call_1']);
    assert.deepEqual([called.name, JSON.parse(called.arguments)], ['roll_dice', THROW]);
    const { content: output } = only(events, 'tool-result')[0];
    const content = dialect.result?.(output) ?? output;
    assert.deepEqual(tool, { role: 'tool', tool_call_id: 'call_1', content });
  });

  test(`a refused turn waits, asks again and goes through ${dialect.path}`, async () => {
    // The error queued last is served first. With a 429, aimock asks for a wait of one second.
    mock.nextRequestError(500, { message: 'broken for a moment', type: 'server_error' });
    mock.nextRequestError(429, { message: 'too fast', type: 'rate_limit_error' });

    const events = await turn(dialect.model);
    assert.deepEqual(order(events), [...CALM, ...RETRY, ...RETRY, 'retry-ended', ...ANSWER]);
    assertAnswered(events);
    const [limited, broken, ...more] = only(events, 'provider-retry');
    assert.equal(more.length, 0);
    assert.deepEqual([limited.attempt, limited.code, limited.delayMs, limited.hinted], [0, '429', 1000, true]);
    assert.match(limited.message, /^HTTP 429: .*too fast/);
    assert.deepEqual([broken.attempt, broken.code, broken.delayMs], [1, '500', 40]);
    assert.match(broken.message, /^HTTP 500: .*broken for a moment/);
    const [ended] = only(events, 'retry-ended');
    assert.deepEqual([ended.attempts, ended.outcome], [2, 'recovered']);

    const asked = mock.getRequests();
    assert.deepEqual(asked.map(({ response }) => response.status), [429, 500, 200, 200]);
    for (const request of asked) assertWellFormed(request, dialect);
    assert.deepEqual(asked[1].body, asked[0].body);
    assert.deepEqual(asked[2].body, asked[0].body);
  });
}

const MOVES = [
  { route: 'overloaded', status: 529, type: 'overloaded_error', from: 'messages/claude-sonnet-4-5', path: '/v1/messages' },
  { route: 'limited', status: 429, type: 'rate_limit_error', from: 'responses/gpt-5.5', path: '/v1/responses' },
];

for (const { route, status, type, from, path } of MOVES) {
  test(`a route whose first target answers ${status} is answered by the second`, async () => {
    mock.nextRequestError(status, { message: 'not now', type });

    const events = await turn(`route/${route}`);
    assertAnswered(events);
    const [moved, ...more] = only(events, 'target-switched');
    assert.deepEqual([moved.from, moved.to, more.length], [from, 'chat/gpt-5.5', 0]);
    const [retry, ...others] = only(events, 'provider-retry');
    assert.deepEqual([retry.delayMs, retry.code, retry.failedTarget, others.length], [0, String(status), from, 0]);

    // One request per published attempt, and none for a credential that was not used.
    const asked = mock.getRequests().map(({ path, response }) => [path, response.status]);
    const chat = ['/v1/chat/completions', 200];
    assert.deepEqual(asked, [[path, status], chat, chat]);
    const { conversationId } = events[0];
    const answer = await fetch(`${server.url}/conversations/${conversationId}/attempts`);
    const { attempts } = await answer.json();
    assert.deepEqual(attempts.map(({ target, code, waitMs }) => [target, code, waitMs]), [[from, String(status), 0]]);
  });
}

test('with several keys, each is used as often as events report', async () => {
  const usedUp = { message: 'You exceeded your current quota.', type: 'insufficient_quota', code: 'insufficient_quota' };
  // The error queued last is served first: two keys are exhausted, and the third is limited once.
  mock.nextRequestError(429, { message: 'too fast', type: 'rate_limit_error' });
  mock.nextRequestError(429, usedUp);
  mock.nextRequestError(429, usedUp);

  const events = await turn('many/gpt-5.5');
  assertAnswered(events);
  const moves = only(events, 'target-switched').map(({ from, to }) => [from, to]);
  assert.deepEqual(moves, [[TARGETS[0], TARGETS[1]], [TARGETS[1], TARGETS[2]]]);

  // Failed attempts have their targets; the two that were answered used the last one.
  const { conversationId } = events[0];
  const { attempts } = await (await fetch(`${server.url}/conversations/${conversationId}/attempts`)).json();
  const told = [...attempts.map(({ target }) => target), TARGETS[2], TARGETS[2]];
  const perKey = KEYS.map((key) => keys.filter((asked) => asked === key).length);
  assert.deepEqual(perKey, TARGETS.map((target) => told.filter((asked) => asked === target).length));
  assert.deepEqual(perKey, [1, 1, 3]);
  assert.deepEqual(mock.getRequests().map(({ response }) => response.status), [429, 429, 429, 200, 200]);
});
