// The server under test, as a separate process.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Starts it, by default on a free port and with its data in memory; `cluster` names NATS servers. `url` is its address, `said` has the lines it printed; `stop(signal)` ends it. */
export async function startServer(extra = [], env = {}, { listen = '127.0.0.1:0', data, cluster } = {}) {
  const program = process.env.EVERTURN_BIN;
  if (!program) throw new Error('set EVERTURN_BIN to the everturn binary, e.g. target/debug/everturn');
  const journal = cluster ? ['--cluster', cluster] : data ? ['--data', data] : ['--memory'];
  const child = spawn(program, ['serve', '--listen', listen, ...journal, ...extra], {
    env: { PATH: process.env.PATH, EVERTURN_TITLES: 'off', ...env }, // tests count calls
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = [];
  const url = await new Promise((resolve, reject) => {
    const read = (line) => {
      said.push(line);
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(line);
      if (found) resolve(found[0]);
    };
    createInterface(child.stdout).on('line', read);
    createInterface(child.stderr).on('line', read);
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`the server ended with ${code}:\n${said.join('\n')}`)));
  });
  const stop = (signal = 'SIGTERM') =>
    new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve();
      child.once('exit', resolve);
      child.kill(signal);
    });
  return { url, said, stop };
}
