// The official OpenAI clients, with the binary and a provider on loopback: they see answers, and no waits.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { startServer } from './support/binary.mjs';
import { LIMITED, TOKEN, tokenServer } from './support/token-server.mjs';

const run = promisify(execFile);
const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const MODEL = 'main/gpt-5.5';

const stage = tokenServer(['gpt-5.5']);
let client;
let provider;
let server;

beforeEach(() => {
  ({ provider, server } = stage);
  client = new OpenAI({ apiKey: TOKEN, baseURL: `${server.url}/v1` });
});

/** A request that is passed through. */
const plain = (content, more = {}) => ({ model: MODEL, messages: [{ role: 'user', content }], ...more });
/** A request that becomes a turn. */
const say = (content, more = {}) => plain(content, { everturn: {}, ...more });

/** The response of the server's native API. */
const told = async (where) =>
  (await fetch(`${server.url}${where}`, { headers: { authorization: `Bearer ${TOKEN}` } })).json();

/** Has a rejected key asked again at once, as after any change of settings. */
const askAgain = () =>
  fetch(`${server.url}/retry`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` },
    body: '{"enabled":true}',
  });

test('an answer comes whole and as a stream', async () => {
  provider.says('Hello.', 'Hello again.', 'And again.');
  const { data, response, request_id } = await client.chat.completions.create(say('hi')).withResponse();
  assert.equal(data.choices[0].message.content, 'Hello.');
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.equal(data.id, `chatcmpl-${request_id}`);
  assert.match(response.headers.get('x-conversation-id'), /^ephemeral:/);
  let text = '';
  for await (const chunk of await client.chat.completions.create(say('hi', { stream: true }))) {
    text += chunk.choices[0]?.delta.content ?? '';
  }
  assert.equal(text, 'Hello again.');
  const whole = await client.chat.completions.stream(say('hi')).finalChatCompletion();
  assert.equal(whole.choices[0].message.content, 'And again.');
  assert.deepEqual(await told('/conversations'), []);
});

test('a request for nothing else is passed through, and two failures are waited out', async () => {
  for (const stream of [false, true]) {
    provider.requests.splice(0);
    provider.says(LIMITED, null, 'At last.');
    const asked = plain('hi', { n: 1, z: { b: 1, a: 2 }, ...(stream ? { stream } : {}) });
    const { data, response } = await client.chat.completions.create(asked).withResponse();
    let text = '';
    if (stream) for await (const chunk of data) text += chunk.choices[0]?.delta.content ?? '';
    assert.equal(stream ? text : data.choices[0].message.content, 'At last.');
    assert.equal(response.headers.get('x-conversation-id'), null);
    const sent = JSON.stringify({ ...asked, model: 'gpt-5.5' });
    assert.deepEqual(provider.requests.map(({ body }) => body), [sent, sent, sent]);
  }
  provider.says({ status: 401, body: { error: { message: 'Bad key.', code: 'theirs' } } });
  await assert.rejects(client.chat.completions.create(plain('hi')), (error) => {
    assert.ok(error instanceof OpenAI.AuthenticationError, error.constructor.name);
    assert.deepEqual([error.code, error.message], ['theirs', '401 Bad key.']);
    return true;
  });
  await askAgain();
});

test('a turn has what the provider reports of its answer', async () => {
  provider.reports = { model: 'gpt-5.5-2026-04-01', system_fingerprint: 'fp_1', service_tier: 'priority' };
  const details = { completion_tokens_details: { reasoning_tokens: 2 }, cost: 0.0125 };
  provider.usage = { prompt_tokens: 4, completion_tokens: 3, ...details };
  try {
    provider.says('One.', 'Two.');
    const { choices, model, system_fingerprint, service_tier, usage } = await client.chat.completions.create(say('hi'));
    assert.deepEqual({ model, system_fingerprint, service_tier }, provider.reports);
    assert.deepEqual(usage, { ...provider.usage, total_tokens: 7 });
    assert.equal(choices[0].message.content, 'One.');
    const streamed = [];
    const stream = await client.chat.completions.create(say('hi', { stream: true, stream_options: { include_usage: true } }));
    for await (const chunk of stream) streamed.push(chunk);
    const last = streamed.at(-1);
    assert.deepEqual(last.usage, { ...provider.usage, total_tokens: 7 });
    assert.equal(last.system_fingerprint, 'fp_1');
    assert.equal(last.model, provider.reports.model);
  } finally {
    [provider.reports, provider.usage] = [];
  }
});

test('a turn keeps the order of parts, and of the keys of a schema', async () => {
  provider.says('{}');
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
  const text = (text) => ({ type: 'text', text });
  const content = [text('First:'), image, text('second:'), image, text('Compare.')];
  const properties = { reasoning: { type: 'string' }, answer: { type: 'number' } };
  const schema = { type: 'object', required: ['reasoning', 'answer'], properties, additionalProperties: false };
  const response_format = { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } };
  await client.chat.completions.create(say(content, { response_format }));
  const sent = JSON.parse(provider.requests[0].body);
  assert.deepEqual(sent.messages, [{ role: 'user', content }]);
  assert.equal(JSON.stringify(sent.response_format.json_schema.schema), JSON.stringify(schema));
});

test('a model is called by its id or by the name that its provider gives it', async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.deepEqual(ids, [MODEL]);
  assert.equal((await client.models.retrieve(MODEL)).id, MODEL);
  provider.says('Yes.');
  const answer = await client.chat.completions.create(say('there?', { model: 'gpt-5.5' }));
  assert.equal(answer.model, 'gpt-5.5');
  assert.equal(provider.requests[0].model, 'gpt-5.5');
});

test('two provider failures are waited out', async () => {
  for (const stream of [false, true]) {
    provider.requests.splice(0);
    provider.says(LIMITED, LIMITED, 'At last.');
    const answer = stream
      ? await client.chat.completions.stream(say('hi')).finalChatCompletion()
      : await client.chat.completions.create(say('hi'));
    assert.equal(answer.choices[0].message.content, 'At last.');
    assert.equal(provider.requests.length, 3);
  }
});

test('the SDK runs its tools and hands the results back', async () => {
  provider.says({ calls: [{ name: 'weather', input: { city: 'Oslo' } }] }, 'Sunny in Oslo.');
  const asked = [];
  const tool = {
    type: 'function',
    function: {
      name: 'weather',
      description: 'The weather in a city.',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      parse: JSON.parse,
      function: ({ city }) => {
        asked.push(city);
        return 'sunny';
      },
    },
  };
  const runner = client.chat.completions.runTools(say('weather?', { stream: true, tools: [tool] }));
  assert.equal(await runner.finalContent(), 'Sunny in Oslo.');
  assert.deepEqual(asked, ['Oslo']);
  assert.deepEqual(provider.requests[1].said.at(-1), 'sunny');
});

test('errors have the classes of the SDK and are not retried', async () => {
  const fails = (promise, kind, wanted) =>
    assert.rejects(promise, (error) => {
      assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
      const { status, param, code } = error;
      assert.deepEqual({ status, param, code }, wanted);
      return true;
    });
  const create = (body, of = client) => of.chat.completions.create(body);
  const unknown = { status: 404, param: 'model', code: 'model_not_found' };
  await fails(create(say('hi', { model: 'gpt-9' })), OpenAI.NotFoundError, unknown);
  const many = { status: 400, param: 'n', code: 'unsupported_parameter' };
  await fails(create(say('hi', { n: 2 })), OpenAI.BadRequestError, many);
  const stranger = new OpenAI({ apiKey: 'wrong', baseURL: `${server.url}/v1` });
  const closed = { status: 401, param: null, code: 'invalid_api_key' };
  await fails(create(say('hi'), stranger), OpenAI.AuthenticationError, closed);
  assert.equal(provider.requests.length, 0);
  provider.says(LIMITED, LIMITED, LIMITED, LIMITED);
  const limited = { status: 429, param: null, code: 'rate_limit_exceeded' };
  await fails(create(say('hi')), OpenAI.RateLimitError, limited);
  assert.equal(provider.requests.length, 4);
  // In a stream that has begun because of a wait, there is no status any more.
  provider.says(LIMITED, LIMITED, LIMITED, LIMITED);
  await assert.rejects(client.chat.completions.stream(say('hi')).finalChatCompletion(), (error) => {
    assert.ok(error instanceof OpenAI.APIError, error.constructor.name);
    assert.equal(error.code, 'rate_limit_exceeded');
    assert.match(error.message, /gave up after \d+ retries.*Slow down/);
    return true;
  });
  assert.equal(provider.requests.length, 8);
});

test('a turn ends when its client disconnects', async () => {
  let answer;
  provider.says(new Promise((resolve) => (answer = resolve)));
  const stop = new AbortController();
  const body = say('hi', { stream: true, metadata: { conversation_id: 'left' }, everturn: { onDisconnect: 'stop' } });
  const asking = client.chat.completions.create(body, { signal: stop.signal });
  while (provider.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  stop.abort();
  // Unless the stream has begun.
  await asking.catch((error) => assert.ok(error instanceof OpenAI.APIUserAbortError, error));
  let turns;
  for (const end = Date.now() + 60_000; !turns?.length; await new Promise((resolve) => setTimeout(resolve, 10))) {
    assert.ok(Date.now() < end, 'the turn goes on');
    ({ turns } = await told('/conversations/left/metrics'));
  }
  assert.equal(turns[0].reason, 'aborted');
  answer('too late');
});

test('a repeated request is paid for once', async () => {
  provider.says('Once.');
  const key = { headers: { 'Idempotency-Key': 'once' } };
  const first = await client.chat.completions.create(say('hi'), key);
  const again = await client.chat.completions.create(say('hi'), key);
  const streamed = await client.chat.completions.stream(say('hi'), key).finalChatCompletion();
  for (const { id, choices } of [again, streamed]) {
    assert.deepEqual([id, choices[0].message.content], [first.id, 'Once.']);
  }
  assert.equal(provider.requests.length, 1);
});

test('the SDK gets its answer although the server is killed while the turn waits', async () => {
  const file = stage.file;
  const data = join(stage.folder, 'everturn.db');
  const first = await startServer(['--config', file], {}, { data });
  const listen = new URL(first.url).host;
  const patient = new OpenAI({ apiKey: TOKEN, baseURL: `${first.url}/v1`, maxRetries: 10 });
  provider.says({ ...LIMITED, headers: { 'retry-after': '2' } }, 'Survived.');
  const asking = patient.chat.completions.create(say('hi'), { headers: { 'Idempotency-Key': 'survives' } });
  while (provider.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await first.stop('SIGKILL');
  const second = await startServer(['--config', file], {}, { data, listen });
  try {
    assert.equal((await asking).choices[0].message.content, 'Survived.');
    assert.equal(provider.requests.length, 2);
  } finally {
    await second.stop();
  }
});

test('a truncated answer is requested again, and held back if the client wants no remark in it', async () => {
  const everturn = { text: 'hold', retry: { afterContent: 'rewind' } };
  provider.says({ breaks: 'Once upon' }, 'Once upon a time.');
  const held = await client.chat.completions.stream(say('hi', { everturn })).finalChatCompletion();
  assert.equal(held.choices[0].message.content, 'Once upon a time.');
  provider.says({ breaks: 'Once upon' }, 'Once upon a time.');
  const shown = await client.chat.completions
    .stream(say('hi', { everturn: { retry: { afterContent: 'rewind' } } }))
    .finalChatCompletion();
  assert.match(shown.choices[0].message.content, /^Once upon\n\n\[The answer broke off.*\n\nOnce upon a time\.$/s);
});

test('the client for Python gets the same', async () => {
  provider.says(LIMITED, null, 'Passed.', null, LIMITED, 'And streamed.');
  provider.says('Hello.', LIMITED, LIMITED, 'At last.', { calls: [{ name: 'weather', input: { city: 'Oslo' } }] }, 'Sunny.', 'Once.');
  const { stdout } = await run(path('.venv/bin/python'), [path('support/openai_client.py'), `${server.url}/v1`, TOKEN, MODEL]);
  assert.deepEqual(JSON.parse(stdout), {
    models: [MODEL],
    passed: ['Passed.', 'And streamed.'],
    whole: 'Hello.',
    streamed: 'At last.',
    calls: [['weather', '{"city":"Oslo"}']],
    answered: 'Sunny.',
    once: ['Once.', 'Once.'],
    errors: [
      ['NotFoundError', 404, 'model_not_found'],
      ['BadRequestError', 400, 'unsupported_parameter'],
      ['AuthenticationError', 401, 'invalid_api_key'],
    ],
  });
  assert.equal(provider.requests.length, 13);
});

/** What Open WebUI reads from a stream: lines that begin with `data:`, and the error of an object without choices. */
async function readAsOpenWebUi(response) {
  const read = { text: '', finish: null, error: null, usage: null };
  for (const line of (await response.text()).split('\n')) {
    if (!line.startsWith('data:')) continue;
    const data = line.slice('data:'.length).trim();
    if (data === '[DONE]') return { ...read, done: true };
    const { choices, error, usage } = JSON.parse(data);
    if (!choices) read.error = error;
    read.text += choices?.[0]?.delta?.content ?? '';
    read.finish = choices?.[0]?.finish_reason ?? read.finish;
    read.usage = usage ?? read.usage;
  }
  return read;
}

test("Open WebUI's requests are answered: models, a chat through two refusals, a title in the background", async () => {
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    'content-type': 'application/json',
    'X-OpenWebUI-User-Id': 'u-1',
    'X-OpenWebUI-User-Name': 'Ada',
    'X-OpenWebUI-Chat-Id': 'c-1',
    'X-OpenWebUI-Message-Id': 'm-1',
  };
  const models = await (await fetch(`${server.url}/v1/models`, { headers })).json();
  assert.deepEqual(models.data.map(({ id }) => id), [MODEL]);

  const post = (body) =>
    fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify({ model: MODEL, ...body }) });
  provider.says(LIMITED, LIMITED, 'It is sunny.', 'Weather', { status: 401, body: { error: { message: 'Bad key.' } } });
  const history = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Hello!' },
    { role: 'user', content: [{ type: 'text', text: 'The weather?' }] },
  ];
  const chat = await readAsOpenWebUi(await post({ stream: true, stream_options: { include_usage: true }, messages: history }));
  assert.deepEqual([chat.text, chat.finish, chat.error, chat.done], ['It is sunny.', 'stop', null, true]);
  assert.equal(provider.requests.length, 3);

  const title = await post({ stream: false, max_completion_tokens: 1000, messages: [{ role: 'user', content: 'Name this chat.' }] });
  assert.equal((await title.json()).choices[0].message.content, 'Weather');

  const refused = await post({ stream: true, messages: [{ role: 'user', content: 'again' }] });
  const said = refused.ok ? (await readAsOpenWebUi(refused)).error : (await refused.json()).error;
  assert.match(said.message, /Bad key/);
  await askAgain();
});
