// A NATS server with JetStream, on a free port of loopback.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** The program, or undefined where the tests that need it are skipped. */
export const program = process.env.EVERTURN_NATS_SERVER;

/** Starts it with its data in this directory. `url` is its address; `stop()` ends it. */
export async function startNats(directory) {
  const child = spawn(program, ['-a', '127.0.0.1', '-p', '-1', '-js', '-sd', directory], { stdio: ['ignore', 'ignore', 'pipe'] });
  const said = [];
  const url = await new Promise((resolve, reject) => {
    let port;
    createInterface(child.stderr).on('line', (line) => {
      said.push(line);
      port ??= /Listening for client connections on 127\.0\.0\.1:(\d+)/.exec(line)?.[1];
      if (/Server is ready/.test(line)) resolve(`nats://127.0.0.1:${port}`);
    });
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`nats-server ended with ${code}:\n${said.join('\n')}`)));
  });
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  };
  return { url, stop };
}
