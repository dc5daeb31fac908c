// Logins at an MCP server that asks for one: on the page and with `everturn mcp login`, with a real authorization server.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';
import { findings } from './support/axe.mjs';
import { startServer } from './support/binary.mjs';
import { answerText, launch, openPage, send } from './support/browser.mjs';
import { startLocked } from './support/locked.mjs';
import { picture } from './support/picture.mjs';
import { startProvider } from './support/provider.mjs';

const run = promisify(execFile);

let browser, folder, locked, control, provider, server, page;
before(async () => (browser = await launch()));
after(() => browser?.close());
beforeEach(async () => {
  provider = await startProvider();
  folder = await mkdtemp(join(tmpdir(), 'everturn-login-'));
  locked = await startLocked();
  ({ control } = locked);
  await writeFile(join(folder, 'config.toml'), `
[[provider]]
name = "chat"
base_url = "${provider.url}"
api_key = "not-a-real-key"
models = ["model"]

[[mcp]]
name = "locked"
url = "${locked.url}/mcp"

[tools.policy]
"locked__*" = "allow"
`);
});
afterEach(async () => {
  await page?.context().close();
  page = undefined;
  await server?.stop();
  locked?.stop();
  await provider?.stop();
  await rm(folder, { recursive: true, force: true });
});

const config = () => join(folder, 'config.toml');
const data = () => join(folder, 'everturn.db');
const logins = () => `${data()}.logins.json`;
const everturn = (...words) => run(process.env.EVERTURN_BIN, [...words, '--config', config(), '--data', data()], { env: { PATH: process.env.PATH } });

const start = async (env = {}) => (server = await startServer(['--config', config()], env, { data: data() }));
const state = () => page.locator('.tool-source .state');
const is = (text) => state().filter({ hasText: text }).waitFor();

async function openTools(options) {
  page = await openPage(browser, server.url, options);
  await page.locator('#tools-button').click();
  await page.locator('.tool-source').waitFor();
}

/** Presses "Log in", and then this link on the page of the authorization server. Returns that page, where it ends. */
async function logIn(link) {
  const opened = page.context().waitForEvent('page');
  await page.getByRole('button', { name: 'Log in at locked' }).click();
  const popup = await opened;
  await popup.getByRole('link', { name: link, exact: true }).click();
  await popup.locator('h1', { hasText: /ogged in/ }).waitFor();
  return popup;
}

test('a person logs in on the page, a turn calls the tool, and the token is nowhere', async () => {
  await control({ asks: true });
  await start({ EVERTURN_LOG: 'debug' });
  await openTools();
  await is('needs a login');
  const popup = await logIn('Allow');
  assert.equal(await popup.locator('h1').textContent(), 'Logged in');
  assert.equal(await popup.evaluate(() => window.opener), null);
  assert.deepEqual(await findings(popup), []);
  await popup.close();
  await is('running');
  await page.getByRole('button', { name: 'Log out at locked' }).waitFor();
  await page.keyboard.press('Escape');
  provider.says({ calls: [{ name: 'locked__greet' }] }, { calls: [{ name: 'locked__leak' }] }, 'It greets.');
  await send(page, 'Greet');
  await page.waitForFunction(() => document.querySelector('.settled .turn .answer'));
  assert.match(await answerText(page), /It greets\./);
  const said = JSON.stringify(provider.requests);
  assert.match(said, /hello, friend/);
  assert.match(said, /you sent Bearer \[secret\]/);
  // The file alone has it.
  const { secrets } = await control();
  assert.equal(secrets.length, 3, 'a code, a token, and the one that replaces it');
  const everywhere = [said, await page.content(), await (await fetch(`${server.url}/tools`)).text()];
  const [{ id }] = await (await fetch(`${server.url}/conversations`)).json();
  everywhere.push(await (await fetch(`${server.url}/conversations/${id}/export`)).text());
  everywhere.push(await (await fetch(`${server.url}/metrics`)).text());
  await server.stop();
  for (const file of await readdir(folder)) if (!file.includes('.logins.')) everywhere.push((await readFile(join(folder, file))).toString('latin1'));
  for (const secret of secrets) assert.ok(!everywhere.some((text) => text.includes(secret)), secret.slice(0, 7));
  assert.ok((await readFile(logins(), 'utf8')).includes(secrets[1]));
  assert.equal((await stat(logins())).mode & 0o777, 0o600);
});

test('a person refuses, tries again, and logs out', async () => {
  await control({ asks: true });
  await start();
  await openTools();
  await is('needs a login');
  const popup = await logIn('Deny');
  assert.equal(await popup.locator('p').textContent(), 'the login was refused: you said no (access_denied)');
  await popup.close();
  await is('needs a login');
  await (await logIn('Allow')).close();
  await is('running');
  await page.getByRole('button', { name: 'Log out at locked' }).click();
  await page.locator('dialog .danger').click();
  await page.getByRole('button', { name: 'Log in at locked' }).waitFor();
  assert.deepEqual(JSON.parse(await readFile(logins(), 'utf8')), {});
});

test('a token expires while a turn waits for its model', async () => {
  await start();
  const { url } = await (await fetch(`${server.url}/mcp/locked/login`, { method: 'POST' })).json();
  await control({ expiresIn: 31 });
  assert.match(await (await fetch(url)).text(), /Logged in/);
  page = await openPage(browser, server.url);
  await until(async () => (await tools()).status === 'up');
  const before = await control();
  provider.says(null, { calls: [{ name: 'locked__greet' }] }, 'Greeted.');
  await send(page, 'Greet');
  await page.locator('#banner:not([hidden])').waitFor();
  // What an hour's wait does: the server no longer takes the token.
  await control({ revoke: 'access', expiresIn: 3600 });
  await page.waitForFunction(() => document.querySelector('.settled .turn .answer'));
  assert.match(await answerText(page), /Greeted\./);
  const after = await control();
  assert.equal(after.refreshed, before.refreshed + 1);
  assert.equal(after.calls, 1);
});

test('a login in the terminal is found by a running server', async () => {
  await start();
  const { stdout: none } = await everturn('mcp', 'list');
  assert.match(none, /^locked {2}no login$/m);
  for (const isPasted of [false, true]) {
    const child = spawn(process.env.EVERTURN_BIN, ['mcp', 'login', 'locked', '--config', config(), '--data', data()], { env: { PATH: process.env.PATH } });
    let said = '';
    child.stdout.on('data', (data) => (said += data));
    await until(() => /^http:\S+$/m.test(said));
    const url = /^http:\S+$/m.exec(said)[0];
    if (isPasted) {
      const answer = await fetch(url, { redirect: 'manual' });
      child.stdin.write(`${answer.headers.get('location')}\n`);
    } else {
      assert.match(await (await fetch(url)).text(), /return to the terminal/);
    }
    const code = await new Promise((resolve) => child.once('exit', resolve));
    assert.equal(code, 0, said);
    assert.match(said, /Logged in\. The token is kept in .*everturn\.db\.logins\.json, which only you can read\./);
    await until(async () => (await tools()).status === 'up');
    assert.match((await everturn('mcp', 'list')).stdout, /^locked {2}logged in$/m);
    assert.match((await everturn('mcp', 'logout', 'locked')).stdout, /Logged out/);
    await until(async () => (await tools()).login === 'needed');
  }
  const unknown = await everturn('mcp', 'login', 'other').catch((error) => error);
  assert.match(unknown.stderr, /there is no MCP server "other"; known: locked/);
});

test('only the owner logs in, and an address that nobody asked for does nothing', async () => {
  await control({});
  await start({ EVERTURN_TOKEN: 'a-token-of-the-owner' });
  const begin = (headers) => fetch(`${server.url}/mcp/locked/login`, { method: 'POST', headers, body: '{}' });
  assert.equal((await begin({})).status, 401);
  const mine = { authorization: 'Bearer a-token-of-the-owner', 'content-type': 'application/json' };
  assert.equal((await begin(mine)).status, 200);
  for (const origin of ['javascript:alert(1)', 'http://a/b', 'file:///a', 'http://a/']) {
    const answer = await fetch(`${server.url}/mcp/locked/login`, { method: 'POST', headers: mine, body: JSON.stringify({ origin }) });
    assert.equal(answer.status, 400, origin);
  }
  const stray = await fetch(`${server.url}/mcp/callback?code=a&state=<b>`);
  assert.equal(stray.status, 400);
  assert.match(await stray.text(), /does not belong to the login/);
  assert.equal((await control()).issued, 0);
});

for (const [width, colorScheme] of [[390, 'dark'], [1280, 'light']]) {
  test(`a call whose login was revoked waits, and goes on after a login on its card, ${width} px, ${colorScheme}`, async () => {
    await start();
    await openTools({ colorScheme, reducedMotion: 'reduce', viewport: { width, height: 800 } });
    await is('needs a login');
    await control({ asks: true });
    await (await logIn('Allow')).close();
    await is('running');
    await page.keyboard.press('Escape');
    await control({ revoke: 'all' });
    provider.says({ calls: [{ name: 'locked__greet' }] }, 'Greeted.');
    await send(page, 'Greet');
    const card = page.locator('.question');
    await card.waitFor();
    assert.equal(await card.getAttribute('aria-label'), 'locked needs a login');
    assert.deepEqual(await findings(page), []);
    await picture(page, `login-question-${width}-${colorScheme}`);
    await (await logIn('Allow')).close();
    await page.waitForFunction(() => document.querySelector('.settled .turn div.answer'));
    assert.match(await answerText(page), /Greeted\./);
    assert.match(JSON.stringify(provider.requests.at(-1)), /hello, friend/);
    const ended = () => page.locator('.permission > p').allTextContents();
    assert.deepEqual(await ended(), ['Logged in (locked)']);
    await page.reload();
    await page.locator('.history .tool').waitFor();
    assert.deepEqual(await ended(), ['Logged in (locked)']);
    assert.equal((await control()).calls, 1, 'the refused call had no effect');
  });
}

const tools = async () => (await (await fetch(`${server.url}/tools`)).json()).sources[0];

async function until(holds) {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
}
