// The vendors' own SDKs, through the binary, to an independent model server (@copilotkit/aimock on loopback): what passes
// through is the same as without us, and two failures are waited out.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import { LLMock } from '@copilotkit/aimock';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { startServer } from './support/binary.mjs';

const run = promisify(execFile);
const path = (name) => fileURLToPath(new URL(name, import.meta.url));

const KEY = 'not-a-real-key';
const CLAUDE = 'claude-sonnet-4-5';
const GPT = 'gpt-5.5';
const GEMINI = 'gemini-3.8-flash';
const SAID = 'They fell off the table.';
const THROW = { sides: 6, count: 2 };
const SCHEMA = { type: 'object', properties: { sides: { type: 'integer' }, count: { type: 'integer' } } };

const config = (url) => `
[retry]
schedule = "exponential"
base_ms = 20
max_retries = 3
jitter = 0.0

[[provider]]
name = "messages"
kind = "anthropic"
base_url = "${url}/v1"
api_key = "${KEY}"

[[provider]]
name = "responses"
kind = "openai-responses"
base_url = "${url}/v1"
api_key = "${KEY}"

[[provider]]
name = "gemini"
kind = "gemini"
base_url = "${url}/v1beta"
api_key = "${KEY}"
`;

let folder;
let mock;
let server;

before(async () => {
  mock = await LLMock.create({ host: '127.0.0.1', port: 0, logLevel: 'silent' });
  folder = await mkdtemp(join(tmpdir(), 'everturn-sdk-'));
  const file = join(folder, 'config.toml');
  await writeFile(file, config(mock.url));
  server = await startServer(['--config', file]);
});

after(async () => {
  await server?.stop();
  await mock?.stop();
  if (folder) await rm(folder, { recursive: true });
});

beforeEach(() => {
  mock.reset();
  mock.on({ userMessage: 'Say' }, { content: SAID });
  const call = { id: 'call_1', name: 'roll_dice', arguments: JSON.stringify(THROW) };
  mock.on({ userMessage: 'Roll', hasToolResult: false }, { toolCalls: [call] });
});

/** Queues two failures. The error queued last is served first; with a 429, aimock asks for a wait of a second. */
function fail() {
  mock.nextRequestError(529, { message: 'too busy', type: 'overloaded_error' });
  mock.nextRequestError(429, { message: 'too fast', type: 'rate_limit_error' });
}

/** Each SDK, with an endpoint: what it reads from an answer in one piece, and from a stream. */
const SDKS = {
  '@anthropic-ai/sdk': (url) => {
    const { messages } = new Anthropic({ apiKey: KEY, baseURL: url, maxRetries: 0 });
    const asked = (content) => ({ model: CLAUDE, max_tokens: 64, messages: [{ role: 'user', content }] });
    const tools = [{ name: 'roll_dice', input_schema: SCHEMA }];
    const read = ({ content, stop_reason }) => ({ text: content[0].text, call: content[0].input, stop_reason });
    return {
      whole: async () => read(await messages.create(asked('Say it.'))),
      streamed: async () => read(await messages.stream(asked('Say it.')).finalMessage()),
      calls: async () => read(await messages.stream({ ...asked('Roll two dice.'), tools }).finalMessage()),
    };
  },
  'openai (Responses)': (url) => {
    const { responses } = new OpenAI({ apiKey: KEY, baseURL: `${url}/v1`, maxRetries: 0 });
    const asked = (input) => ({ model: GPT, input });
    const tools = [{ type: 'function', name: 'roll_dice', parameters: SCHEMA, strict: false }];
    const call = ({ output }) => output.find(({ type }) => type === 'function_call');
    const read = (got) => ({ text: got.output_text, call: call(got) && JSON.parse(call(got).arguments), status: got.status });
    return {
      whole: async () => read(await responses.create(asked('Say it.'))),
      streamed: async () => read(await responses.stream(asked('Say it.')).finalResponse()),
      calls: async () => read(await responses.stream({ ...asked('Roll two dice.'), tools }).finalResponse()),
    };
  },
  '@google/genai': (url) => {
    const { models } = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url } });
    const asked = (contents) => ({ model: GEMINI, contents });
    const tools = [{ functionDeclarations: [{ name: 'roll_dice', parametersJsonSchema: SCHEMA }] }];
    const joined = async (stream) => {
      const parts = [];
      let reason;
      for await (const { candidates } of await stream) {
        parts.push(...(candidates[0].content?.parts ?? []));
        reason = candidates[0].finishReason ?? reason;
      }
      return { text: parts.map(({ text }) => text ?? '').join(''), call: parts.find((part) => part.functionCall)?.functionCall.args, reason };
    };
    const one = async (answer) => joined([await answer]);
    return {
      whole: () => one(models.generateContent(asked('Say it.'))),
      streamed: () => joined(models.generateContentStream(asked('Say it.'))),
      calls: () => joined(models.generateContentStream({ ...asked('Roll two dice.'), config: { tools } })),
    };
  },
};

for (const [name, sdk] of Object.entries(SDKS)) {
  for (const way of ['whole', 'streamed', 'calls']) {
    test(`${name} gets the same answer (${way}), and two failures are waited out`, async () => {
      const direct = await sdk(mock.url)[way]();
      assert.deepEqual(way === 'calls' ? direct.call : direct.text, way === 'calls' ? THROW : SAID);
      fail();
      assert.deepEqual(await sdk(server.url)[way](), direct);
      const [alone, ...tries] = mock.getRequests();
      assert.deepEqual(tries.map(({ response }) => response.status), [429, 529, 200]);
      for (const { method, path, body } of tries) {
        assert.deepEqual({ method, path, body }, { method: alone.method, path: alone.path, body: alone.body });
      }
    });
  }
}

test('an error of the vendor has the class of its SDK', async () => {
  const refuse = (status, type) => mock.nextRequestError(status, { message: 'not like this', type });
  const { messages } = new Anthropic({ apiKey: KEY, baseURL: server.url, maxRetries: 0 });
  const asked = { model: CLAUDE, max_tokens: 64, messages: [{ role: 'user', content: 'Say it.' }] };
  refuse(400, 'invalid_request_error');
  await assert.rejects(messages.create(asked), Anthropic.BadRequestError);
  refuse(403, 'permission_error');
  await assert.rejects(messages.create({ ...asked, stream: true }), Anthropic.PermissionDeniedError);
  const { responses } = new OpenAI({ apiKey: KEY, baseURL: `${server.url}/v1`, maxRetries: 0 });
  refuse(400, 'invalid_request_error');
  await assert.rejects(responses.create({ model: GPT, input: 'Say it.' }), OpenAI.BadRequestError);
  assert.equal(mock.getRequests().length, 3);
});

for (const way of ['messages', 'messages-streamed', 'responses', 'responses-streamed']) {
  test(`the SDKs for Python get their answer through two failures (${way})`, async () => {
    fail();
    const { stdout } = await run(path('.venv/bin/python'), [path('support/vendor_clients.py'), way, server.url, KEY, CLAUDE, GPT]);
    assert.equal(stdout.trim(), SAID);
    assert.deepEqual(mock.getRequests().map(({ response }) => response.status), [429, 529, 200]);
  });
}
