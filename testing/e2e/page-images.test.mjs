// Images in messages: attached, pasted, dropped, removed, sent and shown.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { findings } from './support/axe.mjs';
import { send } from './support/browser.mjs';
import { served } from './support/served.mjs';
import { stage } from './support/stage.mjs';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const pixel = (name) => ({ name, mimeType: 'image/png', buffer: Buffer.from(PIXEL, 'base64') });
const URL = `data:image/png;base64,${PIXEL}`;
const on = stage();

const attach = (...files) => on.page.locator('#attach-file').setInputFiles(files);
const attached = (count) => on.until((wanted) => document.querySelectorAll('#images li').length === wanted, count);
const shown = () => on.page.locator('.attachment img').evaluateAll((images) => images.map(({ src, complete, naturalWidth }) => [src, complete && naturalWidth > 0]));

/** Passes a file to the page like the clipboard or a drop would. */
const give = (kind, type = 'image/png') =>
  on.page.evaluate(
    ({ kind, type, bytes }) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0))], 'given', { type }));
      const event = kind === 'paste' ? new ClipboardEvent(kind, { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
      document.querySelector('#prompt').dispatchEvent(event);
      return event.defaultPrevented;
    },
    { kind, type, bytes: PIXEL },
  );

test('images are attached, pasted, dropped, removed, sent and shown', async () => {
  await on.open();
  await attach(pixel('a.png'), pixel('b.png'));
  await attached(2);
  assert.equal(await give('paste'), true);
  await attached(3);
  assert.equal(await give('drop'), true);
  await attached(4);
  await on.page.locator('#images button').first().click();
  await attached(3);
  assert.deepEqual(await findings(on.page), []);
  const turn = await on.begin('What is this?');
  await attached(0);
  const [{ images, message }] = on.commands('chat.send');
  assert.equal(message, 'What is this?');
  assert.deepEqual(images, Array(3).fill({ url: URL, mimeType: 'image/png' }));
  assert.deepEqual(await on.bubbles(), ['What is this?', '']);
  const three = Array(3).fill([URL, true]);
  assert.deepEqual(await shown(), three);
  // A replay of the turn does not lose them.
  turn.tell({ type: 'user-message', text: 'What is this?' }, { type: 'turn-start' });
  turn.say('A dot.');
  turn.end();
  await on.sealed();
  assert.deepEqual(await shown(), three);
  await on.page.reload();
  await on.page.locator('.history .answer').waitFor();
  assert.deepEqual(await shown(), three);
  assert.deepEqual(on.page.wrongs, []);
});

test('a message may be only an image, and remote images are not fetched', async () => {
  const conversation = on.server.conversation();
  conversation.begin('', [{ url: 'https://example.org/x.png' }, { url: 'data:image/svg+xml;base64,PHN2Zz4=' }, { url: 'javascript:alert(1)' }]).end();
  await on.open(`/#/c/${conversation.id}`);
  await on.page.locator('.attachment').nth(2).waitFor();
  assert.deepEqual(await on.page.locator('.attachment a').evaluateAll((links) => links.map(({ href }) => href)), ['https://example.org/x.png']);
  assert.equal(await on.page.locator('.attachment img').count(), 0);
  await attach(pixel('a.png'));
  await attached(1);
  await on.begins(() => on.page.locator('#send').click());
  assert.equal(on.commands('chat.send')[0].message, '');
  assert.equal(await on.page.locator('.turn[aria-busy=true] .attachment img').count(), 1);
  assert.deepEqual(on.page.wrongs, []);
});

test('a message that cannot be sent is reported and kept', async () => {
  await on.open();
  await give('paste', 'application/octet-stream');
  await on.page.locator('.toast', { hasText: 'nor a PNG, JPEG, GIF or WebP image' }).waitFor();
  await attach(...Array.from({ length: 17 }, (_, index) => pixel(`${index}.png`)));
  await on.page.locator('.toast', { hasText: 'at most 16 images' }).waitFor();
  await attached(16);
  await on.page.reload();
  const turn = await on.begin();
  await attach(pixel('a.png'));
  await attached(1);
  await send(on.page, 'And this?');
  await on.page.locator('.toast', { hasText: 'when this answer has ended' }).waitFor();
  await attached(1);
  assert.equal(await on.page.locator('#prompt').inputValue(), 'And this?');
  turn.end();
  await on.sealed();
  turn.conversation.turn = { end() {} };
  await on.page.locator('#send').click();
  await on.page.locator('.toast', { hasText: 'a turn is running' }).waitFor();
  await attached(1);
});

test('a large image is scaled down before it is sent', async () => {
  await on.open();
  const bytes = await on.page.evaluate(async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 2000, height: 1000 });
    const context = canvas.getContext('2d');
    const noise = context.createImageData(2000, 1000);
    // Noise compresses badly.
    for (let at = 0, seed = 1; at < noise.data.length; at += 1) noise.data[at] = (seed = (seed * 48271) % 2147483647) % 256;
    context.putImageData(noise, 0, 0);
    const encoded = atob(canvas.toDataURL('image/png').split(',')[1]);
    const blob = new Blob([Uint8Array.from(encoded, (character) => character.charCodeAt(0))], { type: 'image/png' });
    const data = new DataTransfer();
    data.items.add(new File([blob], 'noise.png', { type: 'image/png' }));
    document.querySelector('#prompt').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
    return blob.size;
  });
  await attached(1);
  const image = on.page.locator('#images img');
  const url = await image.getAttribute('src');
  assert.ok(bytes > 2_000_000 && url.length < 3_500_000, `${bytes} bytes became ${url.length} characters`);
  assert.match(url, /^data:image\/webp;base64,/);
  assert.deepEqual(await image.evaluate(({ naturalWidth, naturalHeight }) => [naturalWidth, naturalHeight]), [1600, 800]);
});

const real = served((url) => `\n[[provider]]\nname = "sim"\nbase_url = "${url}"\nmodels = ["one"]\n`, 1);
let page;
beforeEach(() => ({ page } = real));

test('the server accepts an image, and it is shown from history', async () => {
  real.provider.says('A dot.');
  await page.locator('#attach-file').setInputFiles([pixel('a.png')]);
  await page.waitForFunction(() => document.querySelectorAll('#images li').length === 1);
  await send(page, 'What is this?');
  await real.shows('A dot.');
  await real.settled();
  const asked = JSON.stringify(real.provider.requests[0].said);
  assert.ok(asked.includes(PIXEL), 'the provider was sent it');
  assert.equal(await page.locator('.attachment img').count(), 1);
  await page.reload();
  await page.locator('.history .answer').waitFor();
  assert.equal(await page.locator('.attachment img').getAttribute('src'), URL);
  assert.deepEqual(page.wrongs, []);
});

const PDF = { name: 'A plan.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.4') };
const PDF_URL = `data:application/pdf;base64,${PDF.buffer.toString('base64')}`;

test('a PDF is sent as a file, shown from history, and can be refused', async () => {
  real.provider.says('A plan.');
  await page.locator('#attach-file').setInputFiles([PDF]);
  await page.locator('#images li', { hasText: 'A plan.pdf' }).waitFor();
  assert.deepEqual(await findings(page), []);
  await send(page, 'What is this?');
  await real.shows('A plan.');
  await real.settled();
  const [message] = JSON.parse(real.provider.requests[0].body).messages;
  assert.deepEqual(message.content, [
    { type: 'file', file: { filename: 'document.pdf', file_data: PDF_URL } },
    { type: 'text', text: 'What is this?' },
  ]);
  await page.reload();
  await page.locator('.history .answer').waitFor();
  assert.equal(await page.locator('.attachment .bubble').textContent(), 'PDF');
  const message2 = "Invalid value: 'file'. Supported values are: 'text' and 'image_url'.";
  real.provider.says({ status: 400, body: { error: { message: message2, type: 'invalid_request_error' } } }, 'Go on.');
  await page.locator('#attach-file').setInputFiles([PDF]);
  await page.locator('#images li').waitFor();
  await send(page, 'And this?');
  await real.shows('choose a model that reads PDFs');
  await send(page, 'Never mind.');
  await real.shows('Go on.');
  assert.ok(real.provider.requests.at(-1).body.includes('a PDF was here, but the provider rejected it'));
  assert.deepEqual(page.wrongs, []);
});

test('text files become part of the message, and are folded', async () => {
  await on.open();
  const notes = { name: 'notes.md', mimeType: '', buffer: Buffer.from('# Plan\n\n"one" & <b>two</b>\n') };
  await attach(notes, { name: 'data.json', mimeType: 'application/json', buffer: Buffer.from('{"a":1}') }, pixel('a.png'));
  await on.until(() => document.querySelectorAll('#files li').length === 2);
  await attached(1);
  await on.page.getByRole('button', { name: 'Remove data.json' }).click();
  assert.deepEqual(await findings(on.page), []);
  const turn = await on.begin('What is this?');
  const message = 'What is this?\n\n<file name="notes.md">\n# Plan\n\n"one" & <b>two</b>\n</file>';
  assert.equal(on.commands('chat.send')[0].message, message);
  assert.equal(await on.page.locator('#files li').count(), 0);
  assert.equal(await on.page.locator('#title').textContent(), 'What is this?');
  turn.tell({ type: 'user-message', text: message }, { type: 'turn-start' });
  turn.say('A plan.');
  turn.end();
  await on.sealed();
  for (const reload of [false, true]) {
    if (reload) await on.page.reload();
    const bubble = on.page.locator('.bubble', { hasText: 'What is this?' });
    await bubble.locator('summary', { hasText: 'notes.md' }).click();
    assert.equal(await bubble.locator('pre').textContent(), '# Plan\n\n"one" & <b>two</b>');
    assert.equal(await bubble.locator('b').count(), 0);
  }
  await attach({ name: 'x.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0, 1]) });
  await on.page.locator('.toast', { hasText: 'x.bin is neither a text file, nor a PDF, nor' }).waitFor();
  await attach({ name: 'big.txt', mimeType: 'text/plain', buffer: Buffer.alloc(400_001, 'a') });
  await on.page.locator('.toast', { hasText: 'big.txt is too large' }).waitFor();
  assert.deepEqual(on.page.wrongs, []);
});

test('the image of a tool result is shown with the call, from history', async () => {
  const conversation = on.server.conversation();
  const turn = conversation.begin('Look');
  const call = { stepId: `${turn.id}#0`, toolCallId: 'a', toolName: 'camera' };
  turn.tell({ type: 'tool-call', ...call, input: {} }, { type: 'step-complete', stepId: call.stepId });
  turn.tell({ type: 'tool-result', ...call, content: 'one image', isError: false });
  Object.assign(conversation.chunks.at(-1).chunk, { images: [{ url: URL, mimeType: 'image/png' }, { url: 'https://elsewhere.example/a.png' }] });
  turn.end();
  await on.open(`/#/c/${conversation.id}`);
  await on.page.locator('.tool summary').click();
  const image = on.page.locator('.tool-images img');
  await on.until(() => document.querySelector('.tool-images img')?.naturalWidth > 0);
  assert.equal(await image.getAttribute('src'), URL);
  assert.equal(await on.page.locator('.tool-images a').getAttribute('href'), 'https://elsewhere.example/a.png', 'which is not fetched');
  assert.deepEqual(await findings(on.page), []);
  assert.deepEqual(on.page.wrongs, []);
});
