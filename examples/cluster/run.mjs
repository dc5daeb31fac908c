#!/usr/bin/env node
// Starts three NATS servers and three Everturn servers on this machine, and ends them on Ctrl-C.
// node examples/cluster/run.mjs [DIRECTORY]: data and logs go there; default: a new temporary directory.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, openSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const PORT = Number(process.env.PORT ?? 4781); // of the first Everturn server; the others follow
const NATS_PORT = Number(process.env.NATS_PORT ?? 14221); // of the first NATS server; routes + 100, monitoring + 200
const built = fileURLToPath(new URL('../../target/release/everturn', import.meta.url));
const everturn = process.env.EVERTURN_BIN ?? (existsSync(built) ? built : 'everturn');
const nats = process.env.NATS_SERVER ?? 'nats-server';
const numbers = [1, 2, 3];

const directory = resolve(process.argv[2] ?? mkdtempSync(join(tmpdir(), 'everturn-cluster-')));
const routes = numbers.map((n) => `"nats://127.0.0.1:${NATS_PORT + 99 + n}"`).join(', ');
const servers = numbers.map((n) => `nats://127.0.0.1:${NATS_PORT + n - 1}`);
const children = [];
let ending = false;

function start(name, program, args, env) {
  const log = openSync(join(directory, `${name}.log`), 'a');
  // In a group of its own: Ctrl-C reaches only this script, which then ends them in order.
  const child = spawn(program, args, { stdio: ['ignore', log, log], env: { ...process.env, ...env }, detached: true });
  const ended = new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit ${code}`));
    child.once('error', (error) => resolve(`${error.message}; is it installed?`));
  });
  const server = { name, child, ended };
  children.push(server);
  ended.then((why) => {
    server.hasEnded = true;
    if (!ending) console.log(`${name} has ended (${why})`);
  });
  return server;
}

async function end(message, code) {
  if (ending) return;
  ending = true;
  console.log(message);
  // Everturn first, so that turns are saved. A child that has ended gets no signal, even if its pid is used again.
  for (const kind of ['everturn', 'nats']) {
    const some = children.filter(({ name }) => name.startsWith(kind));
    for (const { child } of some) {
      child.kill('SIGTERM');
      child.kill('SIGCONT'); // it may be frozen
    }
    const ended = Promise.all(some.map((each) => each.ended));
    await Promise.race([ended, sleep(15_000, null, { ref: false })]);
    some.forEach(({ child }) => child.kill('SIGKILL'));
    await ended;
  }
  process.exit(code);
}

async function answers(server, url) {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline && !server.hasEnded; await sleep(200)) {
    const response = await fetch(url).catch(() => null);
    if (response?.ok && !server.hasEnded) return;
  }
  await end(`${server.name} does not start: see ${join(directory, `${server.name}.log`)}`, 1);
}

process.once('SIGINT', () => end('\nstopping', 0));
process.once('SIGTERM', () => end('stopping', 0));

for (const n of numbers) {
  const store = join(directory, `nats-${n}`);
  mkdirSync(store, { recursive: true });
  const config = join(directory, `nats-${n}.conf`);
  writeFileSync(config, `server_name: nats-${n}
listen: "127.0.0.1:${NATS_PORT + n - 1}"
http: "127.0.0.1:${NATS_PORT + 199 + n}"
ping_interval: "5s"
jetstream { store_dir: ${JSON.stringify(store)}, sync_interval: always }
cluster { name: example, listen: "127.0.0.1:${NATS_PORT + 99 + n}", routes: [${routes}] }
`);
  start(`nats-${n}`, nats, ['-c', config]);
}
await Promise.all(children.map((server, at) => answers(server, `http://127.0.0.1:${NATS_PORT + 200 + at}/healthz`)));
children.forEach(({ name, child }, at) => console.log(`${name}      ${servers[at]}   pid ${child.pid}`));

for (const n of numbers) {
  const address = `127.0.0.1:${PORT + n - 1}`;
  const env = { EVERTURN_NODE: `everturn-${n}` };
  const args = ['serve', '--listen', address, '--cluster', servers.join(',')];
  const server = start(`everturn-${n}`, everturn, args, env);
  await answers(server, `http://${address}/health`);
  console.log(`everturn-${n}  http://${address}    pid ${server.child.pid}`);
}
console.log(`logs and data: ${directory}\nstop: Ctrl-C`);
