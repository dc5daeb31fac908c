// A page with a scripted server, anew for each test.
import { after, afterEach, before, beforeEach } from 'node:test';
import { launch, openPage, send } from './browser.mjs';
import { ScriptedServer } from './scripted-server.mjs';

/** Registers the hooks. The result has the `page` and the `server` of the running test, and ways to wait for them. */
export function stage() {
  let browser;
  const on = { page: null, server: null };

  before(async () => {
    browser = await launch();
  });
  after(() => browser?.close());
  beforeEach(async () => {
    on.server = await new ScriptedServer().listen();
  });
  afterEach(async () => {
    await on.page?.context().close();
    on.page = null;
    await on.server?.close();
  });

  on.until = (condition, argument) => on.page.waitForFunction(condition, argument);
  on.open = async (path = '/', options) => {
    on.page = await openPage(browser, on.server.url + path, options);
    await on.until(() => document.querySelector('#model option') !== null);
  };
  /** Runs `act`, which begins a turn; resolves to the turn, shown on the page. */
  on.begins = async (act) => {
    const begun = new Promise((resolve, reject) => {
      on.server.onTurn = resolve;
      const why = () => reject(new Error(`no turn began after ${JSON.stringify(on.server.commands)}`));
      setTimeout(why, 30_000).unref();
    });
    begun.catch(() => {}); // if `act` fails first
    await act();
    const turn = await begun;
    on.server.onTurn = () => {};
    await on.page.locator('.turn[aria-busy=true]').last().waitFor();
    return turn;
  };
  /** Sends a prompt; resolves to the turn that it began. */
  on.begin = (text = 'What now?') => on.begins(() => send(on.page, text));
  on.shows = (text) => on.until((wanted) => document.querySelector('#transcript').innerText.includes(wanted), text);
  on.line = (text) => on.until((wanted) => document.querySelector('#wait-line').textContent === wanted, text);
  on.sealed = () => on.until(() => document.querySelector('.turn') && !document.querySelector('.turn[aria-busy=true]'));
  on.commands = (type) => on.server.commands.filter((command) => command.type === type);
  /** The next command of this type. */
  on.commanded = (type) =>
    new Promise((resolve) => {
      on.server.onCommand = (command) => command.type === type && resolve(command);
    });
  on.bubbles = () => on.page.locator('.bubble').allTextContents();
  /** Stops the server; `back` restarts it with its state. */
  on.away = async () => {
    await on.server.close();
    await on.page.locator('#connection', { hasText: 'Reconnecting' }).waitFor();
  };
  on.back = async () => {
    await on.server.reopen();
    await on.until(() => document.querySelector('#connection').textContent === '');
  };
  return on;
}
