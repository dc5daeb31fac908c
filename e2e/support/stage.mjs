// A page before a scripted server, for each test anew.
import { after, afterEach, before, beforeEach } from 'node:test';
import { launch, openPage, send } from './browser.mjs';
import { ScriptedServer } from './scripted-server.mjs';

/** Registers the hooks. What it returns has the `page` and the `server` of the running test, and ways to wait for them. */
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
  /** Does `act`, which begins a turn; answers the turn, shown on the page. */
  on.begins = async (act) => {
    const begun = new Promise((resolve) => (on.server.onTurn = resolve));
    await act();
    const turn = await begun;
    on.server.onTurn = () => {};
    await on.page.locator('.turn[aria-busy=true]').last().waitFor();
    return turn;
  };
  /** Sends a prompt; answers the turn that it began. */
  on.begin = (text = 'What now?') => on.begins(() => send(on.page, text));
  on.shows = (text) => on.until((wanted) => document.querySelector('#transcript').innerText.includes(wanted), text);
  on.line = (text) => on.until((wanted) => document.querySelector('#wait-line').textContent === wanted, text);
  on.sealed = () => on.until(() => document.querySelector('.turn') && !document.querySelector('.turn[aria-busy=true]'));
  on.commands = (type) => on.server.commands.filter((command) => command.type === type);
  /** The next command of this type, when it comes. */
  on.commanded = (type) =>
    new Promise((resolve) => {
      on.server.onCommand = (command) => command.type === type && resolve(command);
    });
  on.bubbles = () => on.page.locator('.bubble').allTextContents();
  /** The server is gone; `back` starts it again with what it knew. */
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
