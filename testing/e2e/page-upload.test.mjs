// Attachments that do not fit into a frame of the WebSocket, with the real server: on the page, and in the terminal in a pty.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { served } from './support/served.mjs';

/** A PDF of 10 MB: its contents do not matter here. */
const BYTES = 10_000_000;
const PDF = Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(BYTES - 9, 0x20)]);
const file = (name, buffer = PDF) => ({ name, mimeType: 'application/pdf', buffer });

const stage = served((url) => `[titles]\nenabled = false\n\n[[provider]]\nname = "sim"\nbase_url = "${url}"\nmodels = ["one"]\n`, 1, { isKept: true });

/** The first file that the provider got; titles are asked for without. */
const sentFile = () => {
  const said = stage.provider.requests.flatMap(({ said }) => said).find(Array.isArray);
  return said.find(({ type }) => type === 'file').file.file_data;
};

async function attach(...files) {
  await stage.page.locator('#attach-file').setInputFiles(files);
  await stage.page.locator('#images li').first().waitFor();
}

async function ask(text) {
  await stage.page.locator('#prompt').fill(text);
  await stage.page.locator('#send').click();
}

test('a PDF of 10 MB is sent with the first message and with a later one, and both are there after a reload', async () => {
  const { page, provider, settled } = stage;
  provider.says('Blank pages.', 'Blank again.');
  await attach(file('a.pdf'));
  await ask('What is it?');
  await stage.shows('Blank pages.');
  await settled();
  assert.equal(sentFile().length, Buffer.from(PDF).toString('base64').length + 'data:application/pdf;base64,'.length);
  assert.match(page.url(), /#\/c\//, 'the page shows the conversation that the message made');
  await attach(file('b.pdf'));
  await ask('And this?');
  await stage.shows('Blank again.');
  await settled();
  await page.reload();
  await stage.shows('Blank again.');
  // A response of the history has few chunks if they are large.
  await page.waitForFunction(() => {
    document.querySelector('.older:enabled')?.click();
    return document.querySelectorAll('.attachment').length === 2;
  });
  await stage.shows('Blank pages.');
  assert.deepEqual(page.wrongs, []);
});

test('what is too large is refused on the page, and what the server refuses is given back', async () => {
  const { page } = stage;
  await page.locator('#attach-file').setInputFiles([file('c.pdf', Buffer.concat([PDF, PDF.subarray(0, 3_000_000)]))]);
  await page.locator('.toast', { hasText: 'at most 12 MB' }).waitFor();
  await page.route('**/chat', (route) => route.fulfill({ status: 503, json: { error: 'too many bodies' } }));
  await attach(file('a.pdf'));
  await ask('What is it?');
  await page.locator('.toast', { hasText: 'too many bodies' }).waitFor();
  assert.equal(await page.locator('#prompt').inputValue(), 'What is it?');
  assert.equal(await page.locator('#images li').count(), 1);
});

test('the terminal sends a PDF of 10 MB', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'everturn-upload-'));
  try {
    const path = join(folder, 'a.pdf');
    await writeFile(path, PDF);
    stage.provider.says('Blank pages.');
    const command = `'${process.env.EVERTURN_BIN}' chat --server ${stage.server.url}`;
    const child = spawn('script', ['-qec', command, '/dev/null'], { env: { ...process.env, HOME: folder, TERM: 'xterm' } });
    let said = '';
    const shows = async (text) => {
      while (!said.includes(text)) said += (await once(child.stdout, 'data'))[0];
    };
    await shows('/help');
    child.stdin.write(`/file ${path} What is it?\r`);
    await shows('Blank pages.');
    child.stdin.end('/exit\r');
    await once(child, 'exit');
    assert.ok(sentFile().length > (BYTES * 4) / 3);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
