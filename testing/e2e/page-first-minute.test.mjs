// The first minute: from an empty data directory and a key in the clipboard to the first real answer, on the page and in the
// terminal, and the sentence that helps where it does not work at once. EVERTURN_SHOTS names a directory for screenshots and the
// transcript.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { appendFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { findings } from './support/axe.mjs';
import { startServer } from './support/binary.mjs';
import { answerText, launch, openPage } from './support/browser.mjs';
import { picture } from './support/picture.mjs';
import { startProvider } from './support/provider.mjs';

const KEY = 'sk-live-0123456789abcdefghij-WXYZ';
// On a busy machine that tests something else at the same time, three.
const MINUTE = process.env.CI ? 180_000 : 60_000;

/** What may be wrong at first: the provider's answer, or what else is done; and what helps. */
const TROUBLES = [
  { name: 'a wrong key', answer: { status: 401, body: { error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } } }, helps: /rejected the key[^]*Check that the whole key was pasted/ },
  { name: 'no credit, 402', answer: { status: 402, body: { error: { message: 'Insufficient Balance', code: 402 } } }, helps: /accepted the key, but its account has no credit left/ },
  { name: 'no credit, insufficient_quota', answer: { status: 429, body: { error: { message: 'You exceeded your current quota.', type: 'insufficient_quota', code: 'insufficient_quota' } } }, helps: /accepted the key, but its account has no credit left/ },
  { name: 'no list', list: null, helps: /The list of models of openai-compatible could not be read/ },
  { name: 'no network', isAway: true, helps: /openai-compatible could not be reached/ },
];

let browser, folder, provider, server;
before(async () => (browser = await launch()));
after(() => browser?.close());
beforeEach(async () => {
  provider = await startProvider();
  provider.list = ['large', 'small'];
  folder = await mkdtemp(join(tmpdir(), 'everturn-first-'));
});
afterEach(async () => {
  await server?.stop();
  server = undefined;
  await provider?.stop();
  await rm(folder, { recursive: true, force: true });
});

const shots = process.env.EVERTURN_SHOTS;
const shoot = (page, name) => picture(page, `first-${name}`);
const data = () => join(folder, 'new', 'everturn.db');

/** Runs the binary, types these lines, and returns what it says. */
function everturn(words, typed = '') {
  const child = spawn(process.env.EVERTURN_BIN, words, { env: { PATH: process.env.PATH, HOME: folder } });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
  child.stdin.end(typed);
  return new Promise((resolve) => child.once('exit', (code) => resolve({ code, said })));
}

for (const [width, colorScheme] of [[390, 'light'], [1280, 'dark']]) {
  test(`by page, and by keyboard alone, ${width} px, ${colorScheme}`, async () => {
    const begun = Date.now();
    server = await startServer([], { HOME: folder }, { data: data() });
    const page = await openPage(browser, server.url, { colorScheme, reducedMotion: 'reduce', viewport: { width, height: 800 } });
    await page.locator('#offer-provider').waitFor();
    await shoot(page, `1-start-${width}`);
    await page.locator('#offer-provider').focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement.id === 'provider-vendor');
    await page.keyboard.type('Other, with OpenAI');
    await page.keyboard.press('Tab');
    await page.keyboard.type(KEY);
    for (const text of ['', '', provider.url]) {
      await page.keyboard.press('Tab');
      await page.keyboard.type(text);
    }
    for (const { name, answer, list = ['large', 'small'], isAway, helps } of TROUBLES) {
      provider.list = list;
      if (answer) provider.says(answer);
      await page.locator('#provider-address').fill(isAway ? 'http://127.0.0.1:9/v1' : provider.url);
      await page.locator('#provider-address').focus();
      await page.keyboard.press('Enter');
      await page.waitForFunction((source) => new RegExp(source).test(document.querySelector('#provider-result').innerText), helps.source);
      await shoot(page, `2-${name.replaceAll(/\W+/g, '-')}-${width}`);
      assert.deepEqual(await findings(page), [], name);
    }
    provider.list = ['large', 'small'];
    provider.says('OK', 'Hello, human.');
    await page.locator('#provider-address').fill(provider.url);
    await page.locator('#provider-address').focus();
    await page.keyboard.press('Enter');
    await page.locator('#provider-result', { hasText: 'openai-compatible/large answered' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('#prompt').focus();
    await page.keyboard.type('Hello?');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('.settled .turn .answer'));
    assert.match(await answerText(page), /Hello, human\./);
    await shoot(page, `3-answer-${width}`);
    assert.deepEqual(await findings(page), []);
    const took = Date.now() - begun;
    if (shots) await appendFile(join(shots, 'first-minute.txt'), `page ${width}: ${took} ms, ${TROUBLES.length} failures on the way included\n`);
    assert.ok(took < MINUTE, `${took} ms`);
    assert.deepEqual(page.wrongs.filter((wrong) => !wrong.includes('422')), []);
    assert.equal((await stat(`${data()}.providers.toml`)).mode & 0o777, 0o600);
    await page.context().close();
  });
}

test('in the terminal', async () => {
  const begun = Date.now();
  const transcript = [];
  const run = async (words, typed) => {
    const { code, said } = await everturn(words, typed);
    transcript.push(`$ everturn ${words.join(' ')}\n${said}`);
    return { code, said };
  };
  const add = (url = provider.url) => run(['provider', 'add', 'openai-compatible', '--base-url', url, '--data', data()], `${KEY}\n`);
  for (const { name, answer, list = ['large', 'small'], isAway, helps } of TROUBLES) {
    provider.list = list;
    if (answer) provider.says(answer);
    const { code, said } = await add(isAway ? 'http://127.0.0.1:9/v1' : undefined);
    assert.equal(code, 1, name);
    assert.match(said, helps, name);
    assert.match(said, /Nothing was kept\./);
  }
  provider.list = ['large', 'small'];
  provider.says('OK', 'Hello, human.');
  const { said } = await add();
  const next = /^Try it: everturn (.*)$/m.exec(said)[1].split(' ');
  const { code, said: answer } = await run(next);
  assert.equal(code, 0, answer);
  assert.match(answer, /Hello, human\./);
  const took = Date.now() - begun;
  assert.ok(took < MINUTE, `${took} ms`);
  assert.ok(!transcript.join('').includes(KEY));
  assert.ok((await readFile(`${data()}.providers.toml`, 'utf8')).includes(KEY));
  if (shots) await appendFile(join(shots, 'first-minute.txt'), `terminal: ${took} ms, ${TROUBLES.length} failures on the way included\n\n${transcript.join('\n')}\n`);
});
