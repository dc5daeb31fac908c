// A server that requires a token, with a loopback provider, for the tests of other products' clients.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach } from 'node:test';
import { startServer } from './binary.mjs';
import { startProvider } from './provider.mjs';

export const TOKEN = 'not-a-real-token';
export const LIMITED = { status: 429, body: { error: { code: 'rate_limit_exceeded', message: 'Slow down.' } } };

const DICE = `
[tools]
dice = true

[tools.policy]
roll_dice = "ask"
`;

const config = (url, models, asksForDice) => `
[server]
token = "${TOKEN}"
${asksForDice ? DICE : ''}
[retry]
schedule = "exponential"
base_ms = 20
max_retries = 3
jitter = 0.0

[[provider]]
name = "main"
base_url = "${url}"
api_key = "not-a-real-key"
models = ${JSON.stringify(models)}
`;

/** Registers the hooks. The result has the provider, the server and its configuration file while the tests run. */
export function tokenServer(models, { asksForDice = false } = {}) {
  const on = { folder: null, file: null, provider: null, server: null };
  before(async () => {
    on.provider = await startProvider();
    on.folder = await mkdtemp(join(tmpdir(), 'everturn-token-server-'));
    on.file = join(on.folder, 'config.toml');
    await writeFile(on.file, config(on.provider.url, models, asksForDice));
    on.server = await startServer(['--config', on.file]);
  });
  after(async () => {
    await on.server?.stop();
    await on.provider?.stop();
    if (on.folder) await rm(on.folder, { recursive: true });
  });
  beforeEach(() => on.provider.requests.splice(0));
  return on;
}
