// Keys and tokens appear nowhere: not in what the server answers, sends, logs or stores, except in files of its owner alone.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';
import { startServer } from './support/binary.mjs';
import { launch, openPage, send } from './support/browser.mjs';
import { startLocked } from './support/locked.mjs';
import { startProvider } from './support/provider.mjs';

const run = promisify(execFile);
/** With characters that base64, URLs and JSON write differently. */
const KEYS = {
  pasted: 'sk-pasted/0123+456789~"ABCDEF=WXYZ',
  filed: 'sk-filed/abcd+efghij~"GHIJKL=STUV',
  environment: 'sk-environ/98+76543210~"MNOPQR=OPQR',
  header: 'header-of-a-proxy/1357+924680~KLMN',
};
const TOKENS = { boss: 'token-of-the-administrator-24680', ann: 'token-of-ann-a-caller-1357913579' };
/** What may have secrets, with this mode. Of a caller's token, it has a hash. */
const PRIVATE = ['everturn.db.providers.toml', 'everturn.db.logins.json'];

const base64 = (text) => Buffer.from(text).toString('base64').replaceAll('=', '');
/** How a secret may be written. */
const forms = (secret) => [
  secret,
  secret.slice(4, 20),
  encodeURIComponent(secret),
  JSON.stringify(secret).slice(1, -1),
  base64(secret),
  base64(secret).replaceAll('+', '-').replaceAll('/', '_'),
];

let browser, folder, locked, provider, server, page;
before(async () => (browser = await launch()));
after(() => browser?.close());
beforeEach(async () => {
  provider = await startProvider();
  provider.list = ['large'];
  folder = await mkdtemp(join(tmpdir(), 'everturn-secrets-'));
  locked = await startLocked();
  const named = (name, key) => `
[[provider]]
name = "${name}"
base_url = "${provider.url}"
${key}
models = ["m"]
headers = { x-proxy = '${KEYS.header}' }
`;
  await writeFile(config(), `
[retry]
schedule = "exponential"
base_ms = 20
max_retries = 3
jitter = 0.0

[[mcp]]
name = "locked"
url = "${locked.url}/mcp"

[tools.policy]
"locked__*" = "allow"
${named('filed', `api_key = '${KEYS.filed}'`)}${named('environment', 'api_key_env = "MINE"')}`, { mode: 0o600 });
});
afterEach(async () => {
  await page?.context().close();
  await server?.stop();
  locked?.stop();
  await provider?.stop();
  await rm(folder, { recursive: true, force: true });
});

const config = () => join(folder, 'config.toml');
const data = () => join(folder, 'everturn.db');
const environment = () => ({ HOME: folder, MINE: KEYS.environment, EVERTURN_TOKEN: TOKENS.boss, ANN: TOKENS.ann });
const everturn = async (...words) => {
  const { stdout, stderr } = await run(process.env.EVERTURN_BIN, [...words, '--config', config(), '--data', data()], { env: { PATH: process.env.PATH, ...environment() } });
  return stdout + stderr;
};
const as = (token, more) => ({ headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, ...more });

/** Reads an answer to its end; a stream of events, which has none, to the end of its turn. */
async function read(path, init = as(TOKENS.boss)) {
  const response = await fetch(server.url + path, init);
  let text = JSON.stringify([...response.headers]);
  const decoder = new TextDecoder();
  for await (const part of response.body ?? []) {
    text += decoder.decode(part, { stream: true });
    if (path.includes('/events') && text.includes('turn-sealed')) break;
  }
  assert.ok(response.status < 500, `${path}: ${response.status} ${text}`);
  return { status: response.status, text };
}

/** Answers of a provider that repeats the secrets that it was sent, in all forms. */
function echoes(key, ...more) {
  const all = [key, ...more].flatMap(forms).join(' ');
  const headers = { 'x-echo': `${key} ${encodeURIComponent(key)}` };
  const failing = { status: 500, headers, body: { error: { message: `Broken by ${all}` } } };
  const refusing = { status: 401, headers, body: { error: { message: `Incorrect API key provided: ${all}`, code: 'invalid_api_key', param: `Bearer ${key}` } } };
  return [failing, refusing];
}

/** Every path of the document that can be read, for all conversations. */
async function readable(document, conversations) {
  const paths = Object.entries(document.paths).flatMap(([path, methods]) => (methods.get ? [path] : []));
  assert.ok(paths.length > 25, 'the document describes the routes');
  const filled = conversations.flatMap(({ id, turnId }) => {
    const values = { id, chatId: id, turnId };
    return paths.map((path) => path.replaceAll(/\{(\w+)\}/g, (_, name) => {
      assert.ok(values[name], `${path}: this test does not know what ${name} is`);
      return encodeURIComponent(values[name]);
    }).replace(/events$/, 'events?extensions=true&cursor=0'));
  });
  const more = conversations.map(({ id }) => `/conversations/${id}/export?format=markdown`);
  return [...new Set([...filled, ...more, '/', '/providers', '/audit', '/usage?by=caller,model,target', '/conversations?search=key'])];
}

test('keys and tokens are nowhere but in files of their owner', async () => {
  await writeFile(config(), `${await readFile(config(), 'utf8')}\n[[caller]]\nname = "ann"\ntoken_env = "ANN"\n`);
  server = await startServer(['--config', config()], { ...environment(), EVERTURN_LOG: 'trace' }, { data: data() });
  const seen = {}; // what there is to read, by where
  const see = (where, text) => (seen[where] = `${seen[where] ?? ''}\n${text}`);

  // The page, with all that it is sent.
  page = await openPage(browser, server.url);
  page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => see('socket', payload)));
  page.on('console', (message) => see('console', message.text()));
  await page.locator('#token-field').fill(TOKENS.boss);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('#model option'));
  await page.locator('#providers-button').click();
  await page.locator('#provider-vendor').selectOption('openai-compatible');
  await page.locator('#provider-address').fill(provider.url);
  for (const [answer, says] of [[echoes(KEYS.pasted)[1], 'rejected the key'], ['OK', 'answered']]) {
    provider.says(answer);
    await page.locator('#provider-key').fill(KEYS.pasted);
    await page.locator('#provider-add').click();
    await page.locator('#provider-result').getByText(says).waitFor();
    await page.locator('#provider-key').fill('');
    see('page', await page.content());
  }
  await page.keyboard.press('Escape');

  // A login, and a tool that repeats its token.
  const { text: begun } = await read('/mcp/locked/login', as(TOKENS.boss, { method: 'POST', body: '{}' }));
  see('login', await (await fetch(/"url":"([^"]+)"/.exec(begun)[1])).text());
  while ((await (await fetch(`${server.url}/tools`, as(TOKENS.boss))).json()).sources[0].status !== 'up');

  // Turns, whose failures repeat the key: on the page, over HTTP by a caller, and a call that passes through.
  const turn = async (model) => {
    await page.locator('#new').click();
    await page.locator('#welcome').waitFor();
    await page.locator('#model').selectOption(model);
    await send(page, 'What is a key?');
    await page.locator('.settled .turn[aria-busy=false]').waitFor();
    for (const fold of await page.locator('#transcript summary:visible').all()) await fold.click();
    see('page', await page.content());
  };
  provider.says(echoes(KEYS.pasted)[0], { calls: [{ name: 'locked__greet' }, { name: 'locked__leak' }] }, 'It greets.');
  await turn('openai-compatible/large');
  provider.says(...echoes(KEYS.pasted));
  await turn('openai-compatible/large');
  // What refuses the key once is not asked again, so each has a key of its own.
  const post = async (path, body) => (await read(path, as(TOKENS.ann, { method: 'POST', body: JSON.stringify(body) }))).text;
  provider.says(...echoes(KEYS.filed, KEYS.header));
  see('chat', await post('/chat', { message: 'What is a key?', model: 'filed/m', conversationId: 'filed' }));
  provider.says(...echoes(KEYS.environment, KEYS.header));
  const messages = [{ role: 'user', content: 'What is a key?' }];
  see('passed through', await post('/v1/chat/completions', { model: 'environment/m', messages }));
  for (const model of ['filed/m', 'environment/m']) see('known', await post('/v1/chat/completions', { model, messages }));

  // Whatever can be read, in the document's order.
  const document = await (await fetch(`${server.url}/openapi.json`, as(TOKENS.boss))).json();
  const all = await (await fetch(`${server.url}/conversations`, as(TOKENS.boss))).json();
  assert.equal(all.length, 3);
  for (const each of all) {
    const history = await (await fetch(`${server.url}/conversations/${encodeURIComponent(each.id)}`, as(TOKENS.boss))).json();
    each.turnId = JSON.stringify(history).match(/"turnId":"([^"]+)"/)[1];
  }
  for (const path of await readable(document, all)) {
    const { status, text } = await read(path);
    assert.ok(status < 400 || path === '/cluster', `${path}: ${status} ${text}`);
    see(path, text);
  }
  for (const words of [['provider', 'list'], ['token', 'list'], ['audit'], ['mcp', 'list'], ['conversations', 'list'], ['conversations', 'export', all[0].id]]) {
    see(words.join(' '), await everturn(...words));
  }

  // The last of the keys is removed, too.
  const { secrets } = await locked.control();
  const file = join(folder, PRIVATE[0]);
  for (const name of PRIVATE) assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600, name);
  const kept = await readFile(file, 'utf8');
  assert.ok(kept.includes(JSON.stringify(KEYS.pasted).slice(1, -1)) || kept.includes(KEYS.pasted), 'it is in the file');
  await read('/providers/openai-compatible', as(TOKENS.boss, { method: 'DELETE' }));
  await server.stop();
  see('log', server.said.join('\n'));
  for (const name of await readdir(folder)) {
    if (name === 'config.toml' || name === PRIVATE[1]) continue;
    see(`file ${name}`, (await readFile(join(folder, name))).toString('latin1'));
  }

  // All secrets were at work, and what is searched is all there.
  const sent = JSON.stringify(provider.requests.map(({ headers }) => headers));
  for (const key of Object.values(KEYS)) assert.ok(sent.includes(JSON.stringify(key).slice(1, -1)), `${key} was sent`);
  assert.ok(secrets.length >= 3 && JSON.stringify(provider.requests).includes('hello, friend'));
  assert.match(seen.log, /TRACE/);
  for (const where of ['socket', 'page', 'chat', 'file everturn.db']) assert.match(seen[where], /Incorrect API key provided: \[redacted\]/, where);
  assert.match(seen['passed through'], /Incorrect API key provided: \*{20}/);
  assert.match(seen.known, /rejected/);
  assert.match(seen.page, /…WXYZ/);
  const lost = Object.entries(seen).flatMap(([where, text]) =>
    [...Object.values(KEYS), ...Object.values(TOKENS), ...secrets].flatMap((secret) =>
      forms(secret).filter((form) => text.includes(form)).map((form) => `${where}: ${form}: …${text.slice(Math.max(0, text.indexOf(form) - 200), text.indexOf(form))}`)));
  assert.deepEqual(lost.slice(0, 5), []);
});
