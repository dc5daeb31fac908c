// Tools of real MCP servers through the binary: call results, published states, and what is left of the servers when
// everturn ends.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { LLMock } from '@copilotkit/aimock';
import { startServer } from './support/binary.mjs';

const run = promisify(execFile);
const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const EVERYTHING = path('node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const PYTHON = path('.venv/bin/python');
const BAD_DAYS = path('../../integrations/mcp/tests/mcp/server.py');

// All tools may run without approval, which is tested elsewhere.
const config = (url) => `
[[provider]]
name = "chat"
base_url = "${url}/v1"
api_key = "not-a-real-key"
models = ["gpt-5.5"]

[[mcp]]
name = "everything"
command = "${process.execPath}"
args = ["${EVERYTHING}", "stdio"]
env = { KEY = { env = "OF_TEST" } }
trust_annotations = true

[[mcp]]
name = "bad"
command = "${PYTHON}"
args = ["${BAD_DAYS}"]
trust_annotations = true

[[mcp]]
name = "dead"
command = "${PYTHON}"
args = ["${BAD_DAYS}", "dies-at-start"]
env = { KEY = { env = "OF_TEST" } }

[[mcp]]
name = "keyless"
command = "${PYTHON}"
env = { KEY = { env = "NO_SUCH_VARIABLE" } }
`;

let file;
let folder;
let mock;
let server;

before(async () => {
  mock = await LLMock.create({ host: '127.0.0.1', port: 0, logLevel: 'silent' });
  folder = await mkdtemp(join(tmpdir(), 'everturn-mcp-'));
  file = join(folder, 'config.toml');
  await writeFile(file, config(mock.url));
  server = await startServer(['--config', file], { OF_TEST: 's3cret-value' });
  await sources();
});

after(async () => {
  await server?.stop();
  await mock?.stop();
  if (folder) await rm(folder, { recursive: true });
});

beforeEach(() => mock.reset());

/** The published states of the servers, once all have started or failed. */
async function sources(at = server) {
  for (const end = Date.now() + 30_000; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const told = await (await fetch(`${at.url}/tools`)).json();
    if (told.sources.every(({ status }) => status !== 'starting')) return told;
    assert.ok(Date.now() < end, JSON.stringify(told));
  }
}

/** Runs a turn in which the model calls a tool. Returns the call's result, and the text that the model receives. */
async function call(name, input = {}, at = server) {
  const toolCalls = [{ id: 'call_1', name, arguments: JSON.stringify(input) }];
  mock.on({ userMessage: 'Go', hasToolResult: false }, { toolCalls });
  mock.on({ userMessage: 'Go', hasToolResult: true }, { content: 'Done.' });
  const response = await fetch(`${at.url}/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message: 'Go' }),
  });
  const events = (await response.text()).trimEnd().split('\n').map((line) => JSON.parse(line));
  const result = events.find(({ type }) => type === 'tool-result');
  assert.equal(events.at(-1).type, 'turn-sealed');
  const [asked, told] = mock.getRequests().map(({ body }) => body);
  return { result, offered: asked.tools.map((tool) => tool.function.name), told: told.messages.at(-1) };
}

test('a call of the model is answered by the server', async () => {
  const { result, offered, told } = await call('everything__echo', { message: 'hello' });
  assert.deepEqual([result.content, result.isError], ['Echo: hello', false]);
  assert.deepEqual([told.role, told.tool_call_id, told.content], ['tool', 'call_1', 'Echo: hello']);
  assert.ok(offered.includes('everything__echo') && offered.includes('bad__process'), offered.join());
});

test('a program gets only its own variables, and its secrets are redacted', async () => {
  const { result, told } = await call('everything__get-env');
  const variables = JSON.parse(result.content);
  assert.equal(variables.KEY, '[secret]');
  assert.equal(variables.OF_TEST, undefined);
  assert.ok(!JSON.stringify(told).includes('s3cret-value'));
});

test('the state and errors of all servers are reported', async () => {
  const { tools, sources: [everything, bad, dead] } = await sources();
  assert.deepEqual(tools, []);
  assert.deepEqual([everything, bad, dead].map(({ name, status }) => [name, status]), [
    ['everything', 'up'],
    ['bad', 'up'],
    ['dead', 'down'],
  ]);
  assert.match(dead.message, /^it ended with exit code 3: no key, only \[secret\]/);
  const echo = everything.tools.find(({ name }) => name === 'everything__echo');
  assert.equal(echo.policy, 'allow');
  assert.equal(echo.annotations.readOnly, true);
  assert.equal(echo.inputSchema.type, 'object');

  const { stdout } = await run(process.env.EVERTURN_BIN, ['tools', '--server', server.url]);
  assert.match(stdout, /^everything +up, \d+ tools$/m);
  assert.match(stdout, /^dead +down: it ended with exit code 3/m);
  assert.match(stdout, /^everything__echo +allow +only reads$/m);
  assert.match(stdout, /^bad__die +ask$/m);
});

for (const signal of ['SIGTERM', 'SIGKILL']) {
  test(`servers end with everturn, by ${signal}`, async () => {
    const own = await startServer(['--config', file], { OF_TEST: 's3cret-value' });
    await sources(own);
    const { result } = await call('bad__process', {}, own);
    const alive = () => {
      try {
        return process.kill(Number(result.content), 0);
      } catch {
        return false;
      }
    };
    assert.ok(alive());
    await own.stop(signal);
    // If everturn is killed, it cannot wait for them; they see the end of their input.
    const end = Date.now() + (signal === 'SIGKILL' ? 20_000 : 0);
    while (alive() && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(!alive());
  });
}

test('errors of the servers are printed at startup', async () => {
  const said = await new Promise((resolve, reject) => {
    const words = ['serve', '--memory', '--listen', '127.0.0.1:0', '--config', file];
    const env = { PATH: process.env.PATH, OF_TEST: 's3cret-value' };
    const child = execFile(process.env.EVERTURN_BIN, words, { env });
    let said = '';
    child.stdout.on('data', (data) => {
      said += data;
      if (said.includes('Ctrl-C')) child.kill();
    });
    child.on('error', reject);
    child.on('exit', () => resolve(said));
  });
  assert.match(said, /^ {2}tools +everything: up, \d+ tools$/m);
  assert.match(said, /^ {2}tools +dead: down: it ended with exit code 3: no key, only \[secret\]/m);
  assert.match(said, /^ {2}off +MCP server "keyless": `env.KEY` is missing: set the environment variable NO_SUCH_VARIABLE$/m);
});
