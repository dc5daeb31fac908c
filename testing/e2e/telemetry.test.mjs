// Traces of the binary, parsed with OpenTelemetry's own message types.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startServer } from './support/binary.mjs';
import { startProvider } from './support/provider.mjs';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const SECRET = 'a-secret-that-nobody-may-see';
const BUSY = { status: 503, body: { error: { message: `The engine is overloaded, ${SECRET}.` } } };
const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

const config = (url, wait) => `
system_prompt = "Be brief."

[retry]
schedule = "exponential"
base_ms = ${wait}
jitter = 0.0

[tools]
dice = true

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]
`;

/** A collector whose `spans(count)` resolves once this many spans of `trace` have arrived. */
async function startCollector(...options) {
  const child = spawn(path('.venv/bin/python'), [path('support/otlp_receiver.py'), ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout);
  const spans = [];
  const waiting = [];
  const url = await new Promise((resolve) => lines.once('line', resolve));
  lines.on('line', (line) => {
    spans.push(JSON.parse(line));
    for (const check of waiting) check();
  });
  return {
    url,
    all: spans,
    spans: (count) =>
      new Promise((resolve) => {
        const check = () => spans.length >= count && resolve(spans);
        waiting.push(check);
        check();
      }),
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', resolve);
        child.kill();
      }),
  };
}

let collector;
let more;
let folder;
let provider;
let server;

beforeEach(async () => {
  more = '';
  provider = await startProvider();
  folder = await mkdtemp(join(tmpdir(), 'everturn-traces-'));
});

afterEach(async () => {
  await server?.stop();
  await provider.stop();
  await collector?.stop();
  await rm(folder, { recursive: true });
});

async function start(wait = 20, env = {}, options = {}) {
  const file = join(folder, 'config.toml');
  await writeFile(file, config(provider.url, wait) + more);
  const quick = { OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env };
  server = await startServer(['--config', file], quick, options);
}

const ask = (body, headers = {}, route = '/chat') =>
  fetch(`${server.url}${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
const one = (spans, name) => {
  const found = spans.filter((span) => span.name === name);
  assert.equal(found.length, 1, `${name} among ${spans.map((span) => span.name)}`);
  return found[0];
};

test('a turn is a trace of its steps, attempts, waits and tools, within that of its caller', async () => {
  collector = await startCollector();
  await start();
  provider.usage = { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 };
  provider.says(BUSY, BUSY, { calls: [{ name: 'roll_dice', input: { count: 1, sides: 6 } }] }, 'A six.');
  await (await ask({ message: `Roll, ${SECRET}` }, { traceparent: PARENT, tracestate: 'vendor=1' })).text();
  const spans = await collector.spans(8);
  assert.equal(spans.length, 8);
  assert.ok(spans.every(({ trace, scope }) => trace === PARENT.split('-')[1] && scope === 'everturn'));
  assert.ok(spans.every((span) => span.path === '/v1/traces' && span.resource['service.name'] === 'everturn'));

  const turn = one(spans, 'invoke_agent');
  assert.deepEqual([turn.parent, turn.kind, turn.status], [PARENT.split('-')[2], 'SPAN_KIND_INTERNAL', 'STATUS_CODE_UNSET']);
  assert.equal(turn.attributes['gen_ai.operation.name'], 'invoke_agent');
  assert.deepEqual(turn.attributes['gen_ai.response.finish_reasons'], ['stop']);
  const tokens = ({ attributes }) => ['input', 'output'].map((kind) => attributes[`gen_ai.usage.${kind}_tokens`]);
  assert.deepEqual(tokens(turn), [24, 68]);
  assert.deepEqual(
    ['steps', 'retries', 'waited_ms'].map((name) => turn.attributes[`everturn.turn.${name}`]),
    [2, 2, 60],
  );

  const steps = spans.filter((span) => span.name === 'chat one').sort((a, b) => a.begun - b.begun);
  assert.equal(steps.length, 2);
  assert.ok(steps.every((step) => step.parent === turn.id && step.kind === 'SPAN_KIND_CLIENT'));
  assert.ok(steps.every((step) => step.begun >= turn.begun && step.ended >= step.begun));
  assert.deepEqual(
    steps[0].events.map(({ name, attributes }) => [name, attributes['everturn.retry.delay_ms'], attributes['everturn.retry.category']]),
    [['everturn.retry', 20, 'overloaded'], ['everturn.retry', 40, 'overloaded']],
  );
  assert.deepEqual(steps.map(tokens), [[12, 34], [12, 34]]);
  assert.deepEqual(steps[1].events, []);
  const { attributes } = steps[0];
  assert.equal(attributes['gen_ai.provider.name'], 'openai_compatible');
  assert.equal(attributes['gen_ai.request.model'], 'one');
  assert.equal(attributes['server.port'], Number(new URL(provider.url).port));
  assert.ok(attributes['gen_ai.response.time_to_first_chunk'] >= 0.06, 'the waits are part of it');

  const attempts = spans.filter((span) => span.name === 'POST').sort((a, b) => a.begun - b.begun);
  assert.deepEqual(
    attempts.map(({ parent, attributes, status }) => [
      steps.findIndex((step) => step.id === parent),
      attributes['http.request.resend_count'],
      attributes['http.response.status_code'],
      attributes['error.type'],
      status,
    ]),
    [
      [0, undefined, 503, '503', 'STATUS_CODE_ERROR'],
      [0, 1, 503, '503', 'STATUS_CODE_ERROR'],
      [0, 2, undefined, undefined, 'STATUS_CODE_UNSET'],
      [1, undefined, undefined, undefined, 'STATUS_CODE_UNSET'],
    ],
  );
  // Each request to the provider has the span of its own attempt as parent.
  assert.deepEqual(
    provider.requests.map(({ headers }) => [headers.traceparent, headers.tracestate]),
    attempts.map(({ trace, id }) => [`00-${trace}-${id}-01`, 'vendor=1']),
  );

  const tool = one(spans, 'execute_tool roll_dice');
  assert.deepEqual([tool.parent, tool.attributes['gen_ai.tool.name'], tool.status], [turn.id, 'roll_dice', 'STATUS_CODE_UNSET']);
  assert.ok(!JSON.stringify(spans).includes(SECRET), 'no content leaves');
  assert.ok(!JSON.stringify(spans).includes('A six'), 'no content leaves');
  assert.ok(spans.every(({ attributes }) => CONTENT.every((name) => !(name in attributes))), 'no content leaves');
});

test('a call that passes through is a trace of one step, within that of its caller', async () => {
  collector = await startCollector();
  await start();
  provider.says(BUSY, 'A six.');
  const call = { model: 'sim/one', messages: [{ role: 'user', content: `Roll, ${SECRET}` }], stream: true };
  await (await ask(call, { traceparent: PARENT }, '/v1/chat/completions')).text();
  const spans = await collector.spans(4);
  const [turn, step] = [one(spans, 'invoke_agent'), one(spans, 'chat one')];
  assert.deepEqual([turn.trace, turn.parent, step.parent], [...PARENT.split('-').slice(1, 3), turn.id]);
  assert.deepEqual(turn.attributes['gen_ai.response.finish_reasons'], ['stop']);
  assert.deepEqual(step.events.map(({ name, attributes }) => [name, attributes['everturn.retry.delay_ms']]), [['everturn.retry', 20]]);
  const attempts = spans.filter((span) => span.name === 'POST');
  assert.deepEqual(attempts.map(({ parent, status }) => [parent, status]), [[step.id, 'STATUS_CODE_ERROR'], [step.id, 'STATUS_CODE_UNSET']]);
  assert.deepEqual(provider.requests.map(({ headers }) => headers.traceparent), [PARENT, PARENT], 'its headers are passed on unchanged');
  assert.ok(!JSON.stringify(spans).includes(SECRET) && !JSON.stringify(spans).includes('A six'), 'no content leaves');
});

const CAPTURE = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';
const CONTENT = ['gen_ai.input.messages', 'gen_ai.output.messages', 'gen_ai.system_instructions', 'gen_ai.tool.call.arguments', 'gen_ai.tool.call.result'];

for (const [how, settings, environment] of [
  ['the environment', '', { [CAPTURE]: 'SPAN_ONLY' }],
  ['the configuration', '\n[telemetry]\nmessage_content = true\n', {}],
]) {
  test(`content is in traces if ${how} asks for it, without secrets and images`, async () => {
    collector = await startCollector();
    more = `api_key = "the-key-that-nobody-may-see"\n${settings}`;
    await start(20, environment);
    provider.says(BUSY, { calls: [{ name: 'roll_dice', input: { count: 1, sides: 6 } }] }, 'Your key is the-key-that-nobody-may-see.');
    const images = [{ url: `data:image/png;base64,${'AAAA'.repeat(100)}` }];
    await (await ask({ message: 'Roll it', images })).text();
    const spans = await collector.spans(7);
    const steps = spans.filter((span) => span.name === 'chat one').sort((a, b) => a.begun - b.begun);
    const read = ({ attributes }, name) => JSON.parse(attributes[`gen_ai.${name}`]);
    const asked = [
      { role: 'user', parts: [{ type: 'image', mime_type: 'image/png', size: 300 }, { type: 'text', content: 'Roll it' }] },
    ];
    assert.deepEqual(read(steps[0], 'system_instructions'), [{ type: 'text', content: 'Be brief.' }]);
    assert.deepEqual(read(steps[0], 'input.messages'), asked);
    const [called] = read(steps[0], 'output.messages');
    assert.equal(called.finish_reason, 'tool_call');
    const { id, ...call } = called.parts[0];
    assert.deepEqual(call, { type: 'tool_call', name: 'roll_dice', arguments: { count: 1, sides: 6 } });
    const tool = one(spans, 'execute_tool roll_dice');
    assert.deepEqual(read(tool, 'tool.call.arguments'), { count: 1, sides: 6 });
    const response = tool.attributes['gen_ai.tool.call.result'];
    assert.ok(response.length > 0);
    assert.deepEqual(read(steps[1], 'input.messages'), [
      ...asked,
      { role: 'assistant', parts: [{ id, ...call }] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id, response }] },
    ]);
    assert.deepEqual(read(steps[1], 'output.messages'), [
      { role: 'assistant', parts: [{ type: 'text', content: 'Your key is [redacted].' }], finish_reason: 'stop' },
    ]);
    assert.ok(!JSON.stringify(spans).includes('nobody-may-see'));
  });
}

test('the environment overrides the configuration, and an unknown value is refused at start', async () => {
  collector = await startCollector();
  more = '\n[telemetry]\nmessage_content = true\n';
  await start(20, { [CAPTURE]: 'NO_CONTENT' });
  provider.says('Hello.');
  await (await ask({ message: 'hi' })).text();
  const spans = await collector.spans(3);
  assert.ok(spans.every(({ attributes }) => CONTENT.every((name) => !(name in attributes))));
  await server.stop();
  await assert.rejects(start(20, { [CAPTURE]: 'yes' }), /CAPTURE_MESSAGE_CONTENT=yes is not a known value: set it to SPAN_ONLY/);
});

test('a failed turn says why, and a caller that is not sampled is not traced', async () => {
  collector = await startCollector();
  await start();
  provider.says({ status: 403, body: { error: { message: 'Not for you' } } }, 'One.', 'Two.', 'Three.', 'Four.');
  await (await ask({ message: 'hi' })).text();
  const spans = await collector.spans(3);
  for (const name of ['invoke_agent', 'chat one']) {
    const { status, attributes } = one(spans, name);
    assert.deepEqual([status, attributes['error.type']], ['STATUS_CODE_ERROR', 'permission'], name);
  }
  assert.equal(one(spans, 'POST').attributes['error.type'], '403');
  const text = 'hi';
  const bodies = {
    '/chat': { message: text },
    '/v1/chat/completions': { model: 'sim/one', messages: [{ role: 'user', content: text }], everturn: {} },
    '/api/chat': { id: 'a', trigger: 'submit-message', messages: [{ id: '1', role: 'user', parts: [{ type: 'text', text }] }] },
    '/ag-ui': { threadId: 'b', runId: 'r', messages: [{ id: '1', role: 'user', content: text }], tools: [], context: [] },
  };
  for (const [route, body] of Object.entries(bodies)) {
    await (await ask(body, { traceparent: PARENT.replace(/01$/, '00') }, route)).text();
    assert.match(provider.requests.at(-1).headers.traceparent, /^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-00$/, route);
  }
  assert.equal(provider.requests.length, 5);
  await server.stop();
  assert.equal(collector.all.length, 3, 'the end of the server exports what is left');
});

test('a turn that another process finishes stays one trace', async () => {
  collector = await startCollector();
  const data = join(folder, 'everturn.db');
  await start(2_000, {}, { data });
  provider.says(BUSY, 'Survived.');
  const asking = ask({ message: 'hi', conversationId: 'c' }, { traceparent: PARENT })
    .then((answer) => answer.text())
    .catch(() => 'the connection was lost');
  const [first] = await collector.spans(1);
  assert.equal(first.name, 'POST');
  await server.stop('SIGKILL');
  await asking;
  await start(2_000, {}, { data });
  const spans = await collector.spans(4);
  const [turn, step] = [one(spans, 'invoke_agent'), one(spans, 'chat one')];
  assert.ok(spans.every(({ trace }) => trace === first.trace));
  assert.deepEqual([turn.parent, step.parent, first.parent], [PARENT.split('-')[2], turn.id, step.id]);
  assert.ok(turn.begun < first.begun + 1_000_000_000 && turn.ended > first.ended, 'it began before the crash');
  const attempts = spans.filter((span) => span.name === 'POST');
  assert.deepEqual(attempts.map(({ attributes }) => attributes['http.request.resend_count']), [undefined, 1]);
  assert.notEqual(attempts[0].id, attempts[1].id);
});

test('an unreachable collector only loses spans, and an unsupported protocol is refused at start', async () => {
  collector = await startCollector('--refuse', '1000');
  await start();
  provider.says('Hello.');
  assert.match(await (await ask({ message: 'hi' })).text(), /Hello\./);
  await server.stop();
  await assert.rejects(start(20, { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }), /OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported/);
});
