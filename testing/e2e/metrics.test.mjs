// The example dashboard and alerts in a real Prometheus that scrapes the binary, so that no metric name in them is
// stale.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startServer } from './support/binary.mjs';
import { startProvider } from './support/provider.mjs';

const run = promisify(execFile);
const example = (name) => fileURLToPath(new URL(`../../examples/monitoring/${name}`, import.meta.url));
const BUSY = { status: 503, body: { error: { message: 'The engine is overloaded.' } } };
const ROLL = { calls: [{ name: 'roll_dice', input: { count: 1, sides: 6 } }] };

let folder;
let prometheus;
let provider;
let server;

/** A free port. */
async function freePort() {
  const taken = createServer();
  await new Promise((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address();
  await new Promise((resolve) => taken.close(resolve));
  return port;
}

async function startPrometheus(target) {
  const file = join(folder, 'prometheus.yml');
  const own = await readFile(example('prometheus.yml'), 'utf8');
  const adapted = own
    .replace('scrape_interval: 15s', 'scrape_interval: 1s')
    .replace('alerts.yml', example('alerts.yml'))
    .replace(/127\.0\.0\.1:\d+/, new URL(target).host);
  await writeFile(file, adapted);
  const url = `http://127.0.0.1:${await freePort()}`;
  const options = [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'tsdb')}`];
  const child = spawn('prometheus', [...options, `--web.listen-address=${new URL(url).host}`, '--log.level=error'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const get = async (path) => (await (await fetch(`${url}/api/v1/${path}`)).json()).data;
  const query = async (text) => (await get(`query?query=${encodeURIComponent(text)}`)).result;
  const until = async (text, holds) => {
    for (;;) {
      const result = await query(text).catch(() => []);
      if (holds(result)) return;
      await sleep(50);
    }
  };
  const stop = () =>
    new Promise((resolve) => {
      child.once('exit', resolve);
      child.kill();
    });
  return { get, query, until, stop };
}

async function turn() {
  provider.says(BUSY, ROLL, 'Done.');
  const asked = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"message":"Roll"}' };
  await (await fetch(`${server.url}/chat`, asked)).text();
}

before(async () => {
  provider = await startProvider();
  provider.usage = { prompt_tokens: 12, completion_tokens: 34, total_tokens: 46 };
  folder = await mkdtemp(join(tmpdir(), 'everturn-metrics-'));
  const file = join(folder, 'config.toml');
  await writeFile(file, `
[retry]
schedule = "exponential"
base_ms = 10
jitter = 0.0
[tools]
dice = true
[[provider]]
name = "sim"
base_url = "${provider.url}"
models = ["one"]
`);
  server = await startServer(['--config', file]);
  prometheus = await startPrometheus(server.url);
  await turn();
  await prometheus.until('everturn_turns_sealed_total', ([first]) => first?.value[1] === '1');
  await turn();
  await prometheus.until('sum(everturn_turns_sealed_total)', ([first]) => first?.value[1] === '2');
});

after(async () => {
  await prometheus?.stop();
  await server?.stop();
  await provider?.stop();
  await rm(folder, { recursive: true, force: true });
});

test('the metrics follow the rules of Prometheus', async () => {
  const figures = await (await fetch(`${server.url}/metrics`)).text();
  const checking = run('promtool', ['check', 'metrics']);
  checking.child.stdin.end(figures);
  const { stdout, stderr } = await checking;
  assert.equal(stdout + stderr, '');
  // Turns may wait for days, so the buckets reach that far.
  assert.match(figures, /everturn_turn_seconds_bucket\{reason="stop",le="604800"\} 2/);
});

test('every query of the dashboard finds something', async () => {
  const { panels } = JSON.parse(await readFile(example('dashboard.json'), 'utf8'));
  assert.ok(panels.length >= 12);
  for (const { title, targets } of panels) {
    for (const { expr } of targets) {
      const found = await prometheus.query(expr.replaceAll('$__rate_interval', '1m'));
      assert.ok(found.length > 0, `${title}: ${expr} finds nothing`);
      assert.ok(found.every(({ value }) => value[1] !== 'NaN'), `${title}: ${expr} is no number`);
    }
  }
});

test('the alerts are valid and use existing metrics', async () => {
  await run('promtool', ['check', 'rules', example('alerts.yml')]);
  const { groups } = await prometheus.get('rules');
  const rules = groups.flatMap((group) => group.rules);
  assert.ok(rules.length >= 5);
  for (const { name, query } of rules) {
    for (const [figure] of query.matchAll(/\b(everturn_\w+|up)\b/g)) {
      assert.ok((await prometheus.query(figure)).length > 0, `${name}: there is no ${figure}`);
    }
  }
  // An alert that must fire.
  provider.says({ status: 401, body: { error: { message: 'Incorrect API key.' } } });
  const asked = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"message":"Hi"}' };
  await (await fetch(`${server.url}/chat`, asked)).text();
  const refused = rules.find(({ name }) => name === 'EverturnKeyRefused').query;
  provider.says({ status: 401, body: { error: { message: 'Incorrect API key.' } } });
  await prometheus.until('everturn_provider_calls_failed_total{category="auth"}', ([first]) => first !== undefined);
  await (await fetch(`${server.url}/chat`, asked)).text();
  await prometheus.until(refused, ([first]) => Number(first?.value[1]) > 0);
});
