// The pages in `examples/front_ends`, each in a browser with the binary and a loopback provider.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { findings } from './support/axe.mjs';
import { startServer } from './support/binary.mjs';
import { launch } from './support/browser.mjs';
import { picture } from './support/picture.mjs';
import { LIMITED } from './support/token-server.mjs';
import { startProvider } from './support/provider.mjs';

const FOLDER = fileURLToPath(new URL('../../examples/front_ends/', import.meta.url));
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };
const limitedFor = (seconds) => ({ ...LIMITED, headers: { 'retry-after': String(seconds) } });
const LIMITED_FOR_A_WHILE = limitedFor(6);
const roll = { calls: [{ name: 'roll_dice', input: { sides: 6 } }] };

let browser;
let files;
let folder;
let origin;
let provider;
let server;

/** Bundles the pages like the command in their README. Two packages are installed under other names here. */
async function bundle() {
  const { outputFiles } = await build({
    entryPoints: ['use_chat.jsx', 'ag_ui.js', 'copilotkit.js', 'openai.js'].map((name) => join(FOLDER, name)),
    alias: { '@ai-sdk/react': 'react-sdk4', ai: 'ai7' },
    nodePaths: [fileURLToPath(new URL('node_modules', import.meta.url))],
    bundle: true,
    jsx: 'automatic',
    format: 'esm',
    outdir: 'built',
    write: false,
    logLevel: 'silent',
  });
  return new Map(outputFiles.map(({ path, contents }) => [`/built/${path.split('/').at(-1)}`, contents]));
}

before(async () => {
  const built = await bundle();
  files = createServer(async (request, response) => {
    const path = new URL(request.url, 'http://page').pathname;
    const content = built.get(path) ?? (await readFile(join(FOLDER, path)).catch(() => null));
    response.writeHead(content ? 200 : 404, { 'content-type': TYPES[extname(path)] ?? 'text/plain' }).end(content);
  });
  await new Promise((resolve) => files.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${files.address().port}`;
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await provider?.stop();
  files?.close();
  files?.closeAllConnections();
  if (folder) await rm(folder, { recursive: true });
});

beforeEach(async () => {
  await server?.stop();
  await provider?.stop();
  provider = await startProvider();
  folder ??= await mkdtemp(join(tmpdir(), 'everturn-examples-'));
  const config = join(folder, 'config.toml');
  await writeFile(
    config,
    `[server]
allowed_origins = ["${origin}"]
[tools]
dice = true
[tools.policy]
roll_dice = "ask"
[retry]
schedule = "exponential"
base_ms = 20
jitter = 0.0
[[provider]]
name = "main"
base_url = "${provider.url}"
api_key = "not-a-real-key"
models = ["gpt-5.5"]
`,
  );
  server = await startServer(['--config', config]);
});

async function open(name, colorScheme = 'light') {
  const context = await browser.newContext({ viewport: { width: 900, height: 640 }, colorScheme });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.wrongs = [];
  page.on('console', (message) => message.type() === 'error' && page.wrongs.push(message.text()));
  page.on('pageerror', (error) => page.wrongs.push(error.stack));
  const [file, query = ''] = name.split('?');
  await page.goto(`${origin}/${file}.html?${query}&server=${server.url}`);
  return page;
}

async function say(page, text) {
  await page.getByLabel('Message').fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
}

const PAGES = [
  ['use_chat', 'light'],
  ['use_chat?socket', 'dark'],
  ['ag_ui', 'dark'],
  ['copilotkit', 'light'],
  ['copilotkit', 'dark'],
  ['openai', 'light'],
];

for (const [name, colorScheme] of PAGES) {
  test(`${name}, ${colorScheme}: a message, a wait, an answer, a tool`, async () => {
    const page = await open(name, colorScheme);
    provider.says(LIMITED_FOR_A_WHILE, 'Here I am, after a wait.');
    await say(page, 'Are you there?');
    const wait = page.getByRole('status');
    await wait.filter({ hasText: /Trying again in \d+ s/ }).waitFor();
    assert.match(await wait.innerText(), /Slow down/);
    await picture(page, `${name}-${colorScheme}-wait`);
    await page.locator('.assistant', { hasText: 'Here I am, after a wait.' }).waitFor();
    await wait.waitFor({ state: 'hidden' });

    provider.says(roll, 'A good throw.', roll, 'As you like.');
    await say(page, 'Roll a die for me.');
    await page.getByRole('button', { name: 'Allow' }).waitFor();
    await picture(page, `${name}-${colorScheme}-approval`);
    assert.deepEqual(await findings(page), []);
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.locator('.assistant', { hasText: 'A good throw.' }).waitFor();
    // On the OpenAI page, the result arrives over another connection than the answer.
    await page.locator('.tool', { hasText: /^roll_dice \{"sides":6\} → \d$/ }).waitFor();
    await say(page, 'Again!');
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.locator('.assistant', { hasText: 'As you like.' }).waitFor();
    await picture(page, `${name}-${colorScheme}-end`);
    const said = await page.locator('.user').allInnerTexts();
    assert.deepEqual(said, ['Are you there?', 'Roll a die for me.', 'Again!']);

    // A waiting turn can be stopped. Otherwise, it would wait longer than the test does.
    provider.says(limitedFor(60));
    await say(page, 'One more.');
    await wait.waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await wait.waitFor({ state: 'hidden' });
    await page.waitForFunction(() => document.querySelector('form [type=button]').disabled);
    assert.deepEqual(page.wrongs, []);
    await page.context().close();
  });
}

for (const name of ['use_chat', 'ag_ui', 'copilotkit', 'openai']) {
  test(`${name}: two calls that wait at the same time are answered one by one`, async () => {
    const page = await open(name);
    provider.says({ calls: [...roll.calls, ...roll.calls] }, 'One of them.');
    await say(page, 'Roll two dice.');
    await page.getByRole('button', { name: 'Allow' }).nth(1).waitFor();
    await page.getByRole('button', { name: 'Allow' }).first().click();
    await page.waitForFunction(() => [...document.querySelectorAll('button')].filter((button) => button.innerText === 'Deny').length === 1);
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.locator('.assistant', { hasText: 'One of them.' }).waitFor();
    assert.deepEqual(page.wrongs, []);
    await page.context().close();
  });
}

for (const name of ['use_chat', 'copilotkit']) {
  test(`${name}: a reloaded page follows its turn`, async () => {
    const page = await open(name);
    provider.says(limitedFor(15), 'Still here.');
    await say(page, 'Wait for me');
    await page.getByRole('status').waitFor();
    await page.reload();
    await page.getByRole('status').waitFor();
    await page.locator('.assistant', { hasText: 'Still here.' }).waitFor();
    assert.deepEqual(await page.locator('.user').allInnerTexts(), ['Wait for me']);
    assert.deepEqual(page.wrongs, []);
    await page.context().close();
  });
}
