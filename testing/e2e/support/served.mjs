// A page with the real server, whose provider is on loopback, anew for each test.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach } from 'node:test';
import { startServer } from './binary.mjs';
import { launch, openPage } from './browser.mjs';
import { startProvider } from './provider.mjs';

/**
 * Registers the hooks. `config(url)` returns the configuration, which offers this number of `models`. With `isKept`,
 * conversations are stored in a file. The result has the page, server and provider of the running test.
 */
export function served(config, models, { isKept = false } = {}) {
  let directory;
  const on = { browser: null, provider: null, server: null, page: null };

  /** Starts the server, at the same address if it ran before. */
  async function start(listen) {
    const data = isKept ? join(directory, 'everturn.db') : undefined;
    on.server = await startServer(['--config', join(directory, 'config.toml')], {}, { data, listen });
  }

  before(async () => {
    on.browser = await launch();
  });
  after(() => on.browser?.close());
  beforeEach(async () => {
    on.provider = await startProvider();
    directory = await mkdtemp(join(tmpdir(), 'everturn-'));
    await writeFile(join(directory, 'config.toml'), config(on.provider.url));
    await start();
    on.page = await openPage(on.browser, on.server.url);
    await on.page.waitForFunction((wanted) => document.querySelectorAll('#model option').length === wanted, models);
  });
  afterEach(async () => {
    await on.page?.context().close();
    await on.server?.stop();
    await on.provider?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  /** Ends the server, and restarts it once `on.page` has noticed and `meanwhile()` is done. */
  on.crash = async ({ signal = 'SIGKILL', meanwhile = async () => {} } = {}) => {
    await on.server.stop(signal);
    await on.page.locator('#connection', { hasText: 'Reconnecting' }).waitFor();
    await meanwhile();
    await start(new URL(on.server.url).host);
    await on.page.waitForFunction(() => document.querySelector('#connection').textContent === '');
  };
  /** Waits until the turn is over and its history is stored. */
  on.settled = (page = on.page) =>
    page.waitForFunction(
      () => document.querySelector('.settled .turn') && !document.querySelector('.turn[aria-busy=true]'),
    );
  /** Waits until the transcript has this text. */
  on.shows = (text, page = on.page) =>
    page.waitForFunction((wanted) => document.querySelector('#transcript').innerText.includes(wanted), text);
  return on;
}
