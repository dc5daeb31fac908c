// The example subscriber with the real server, over both of its transports, and the example page.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startServer } from './support/binary.mjs';
import { launch, openPage } from './support/browser.mjs';

const SCRIPT = fileURLToPath(new URL('../../examples/subscribe.mjs', import.meta.url));
const PAGE = new URL('../../examples/subscribe.html', import.meta.url);
const run = promisify(execFile);

let files;
let folder;
let server;

before(async () => {
  const page = await readFile(PAGE);
  files = createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(page));
  await new Promise((resolve) => files.listen(0, '127.0.0.1', resolve));
  folder = await mkdtemp(join(tmpdir(), 'everturn-subscribe-'));
  const path = join(folder, 'config.toml');
  const origin = `http://127.0.0.1:${files.address().port}`;
  const retry = '[retry]\nschedule = "exponential"\nbase_ms = 30\njitter = 0.0\n';
  await writeFile(path, `${retry}[server]\nallowed_origins = ["${origin}"]\n`);
  server = await startServer(['--config', path]);
});

after(async () => {
  await server?.stop();
  files?.close();
  if (folder) await rm(folder, { recursive: true });
});

const transports = [
  ['--experimental-websocket', 'overWebSocket'],
  ['--no-experimental-websocket', 'overServerSentEvents'],
];

for (const [flag, name] of transports) {
  const watch = (...words) => run(process.execPath, ['--no-warnings', flag, SCRIPT, server.url, ...words]);

  test(`each retry is told, ${name}`, async () => {
    const { stdout } = await watch();
    const [head, ...lines] = stdout.trimEnd().split('\n');
    assert.match(head, new RegExp(`^watching \\S+, ${name}$`));
    assert.equal(lines.length, 4, stdout);
    assert.match(lines[0], /^retry 1 in 30 ms: HTTP 529: /);
    assert.match(lines[1], /^retry 2 in 60 ms: HTTP 502: /);
    assert.deepEqual(lines.slice(2), ['recovered after 2 retries', 'done: stop']);

    // A late subscriber receives the same.
    const late = await watch(head.split(/[ ,]/)[1]);
    assert.equal(late.stdout, stdout);
  });

  test(`an unknown conversation is refused at once, ${name}`, async () => {
    const refused = await watch('nowhere').catch((error) => error);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^there is no conversation nowhere/);
  });
}

test('each retry is shown in a browser, on a page of another origin', async () => {
  const browser = await launch();
  try {
    const page = await openPage(browser, `http://127.0.0.1:${files.address().port}/?server=${server.url}`);
    await page.locator('li', { hasText: 'done: stop' }).waitFor();
    const lines = await page.locator('li').allInnerTexts();
    assert.equal(lines.length, 4, lines.join('\n'));
    assert.match(lines[0], /^retry 1 in 30 ms: HTTP 529: /);
    assert.match(lines[1], /^retry 2 in 60 ms: HTTP 502: /);
    assert.deepEqual(lines.slice(2), ['recovered after 2 retries', 'done: stop']);
    assert.deepEqual(page.wrongs, []);
  } finally {
    await browser.close();
  }
});
