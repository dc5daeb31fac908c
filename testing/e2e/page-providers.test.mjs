// From nothing to a real answer: a key is pasted on the page, tried, and there.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { startServer } from './support/binary.mjs';
import { answerText, launch, openPage, send } from './support/browser.mjs';
import { startProvider } from './support/provider.mjs';

const KEY = 'sk-live-0123456789abcdefghij-WXYZ';
const REJECTED = { status: 401, body: { error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } } };
const UNPAID = { status: 429, body: { error: { message: 'You exceeded your current quota, please check your plan and billing details.', type: 'insufficient_quota', code: 'insufficient_quota' } } };

let browser, provider, server, page;
before(async () => (browser = await launch()));
after(() => browser?.close());
beforeEach(async () => {
  provider = await startProvider();
  provider.list = ['large', 'small', 'text-embedding-1'];
  server = await startServer();
});
afterEach(async () => {
  await page?.context().close();
  await server?.stop();
  await provider?.stop();
});

const open = async (options) => {
  page = await openPage(browser, server.url, options);
  await page.waitForFunction(() => document.querySelector('#model option'));
};
const result = () => page.locator('#provider-result');

async function paste(key, vendor = 'openai-compatible') {
  await page.locator('#provider-vendor').selectOption(vendor);
  if (!(await page.locator('#provider-address').isVisible())) await page.locator('#provider-more summary').click();
  await page.locator('#provider-address').fill(provider.url);
  await page.locator('#provider-key').fill(key);
  await page.locator('#provider-add').click();
}

const models = () => page.locator('#model option').allTextContents();

test('a key is all that it takes', async () => {
  await open();
  await page.locator('#first').getByText('everturn with claude').waitFor();
  await page.locator('#offer-provider').click();
  await page.locator('#provider-form').waitFor();
  provider.says('OK', 'Hello, human.');
  await paste(KEY);
  await page.locator('#provider-result', { hasText: 'openai-compatible/large answered; 2 models are offered.' }).waitFor();
  assert.deepEqual(await models(), ['openai-compatible/large', 'openai-compatible/small']);
  await page.locator('#provider-list', { hasText: 'Chat Completions · key …WXYZ · 2 models' }).waitFor();
  assert.equal(await page.locator('#provider-key').inputValue(), '', 'the key does not stay on the page');
  await page.keyboard.press('Escape');
  assert.ok(await page.locator('#first').isHidden());
  await send(page, 'Hello?');
  await page.waitForFunction(() => document.querySelector('.settled .turn .answer'));
  assert.match(await answerText(page), /Hello, human\./);
  assert.equal(provider.requests.at(-1).headers.authorization, `Bearer ${KEY}`);
  const held = await page.evaluate(async () => {
    const all = await Promise.all(['', 'providers', 'models', 'targets', 'conversations', 'metrics'].map((path) => fetch(path).then((each) => each.text())));
    return [document.documentElement.outerHTML, JSON.stringify(localStorage), JSON.stringify(sessionStorage), ...all].join('\n');
  });
  assert.ok(!held.includes(KEY.slice(0, 20)) && held.includes('WXYZ'));

  await page.locator('#providers-button').click();
  await page.getByRole('button', { name: 'Remove openai-compatible' }).click();
  await page.locator('dialog.ask .danger').click();
  await page.waitForFunction(() => document.querySelector('#model option')?.value === 'demo/flaky');
  await page.keyboard.press('Escape');
  assert.deepEqual(page.wrongs, []);
});

test('what does not work is explained, with a way on', async () => {
  await open();
  await page.locator('#providers-button').click();
  await page.locator('#provider-form').waitFor();
  provider.says(REJECTED);
  await paste('sk-wrong-0123456789abcdef');
  await result().getByText('openai-compatible rejected the key.').waitFor();
  await result().getByText('Check that the whole key was pasted').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), 'provider-result', 'it is read out');
  assert.ok((await page.locator('#provider-key').inputValue()).length > 0, 'and can be corrected');

  provider.says(UNPAID);
  await paste(KEY, 'openrouter');
  await result().getByText('accepted the key, but its account has no credit left').waitFor();
  assert.equal(await result().locator('a').getAttribute('href'), 'https://openrouter.ai/settings/credits');
  provider.says(UNPAID);
  await page.locator('#provider-anyway').click();
  await result().getByText('openrouter was added; 2 models are offered.').waitFor();
  assert.deepEqual(await models(), ['openrouter/large', 'openrouter/small']);

  provider.list = null;
  await paste(KEY);
  await result().getByText('The list of models of openai-compatible could not be read.').waitFor();
  provider.says('OK');
  await page.locator('#provider-models').fill('special');
  await page.locator('#provider-add').click();
  await result().getByText('openai-compatible/special answered; 1 model is offered.').waitFor();

  await provider.stop();
  await paste(KEY, 'groq');
  await result().getByText('groq could not be reached.').waitFor();
  assert.ok(!(await page.content()).includes(KEY.slice(0, 20)));
});

test('colours follow the system, or are chosen', async () => {
  await open({ colorScheme: 'light' });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.locator('#theme').selectOption('dark');
  const dark = await paper();
  assert.notEqual(dark, light);
  await page.reload();
  assert.equal(await paper(), dark, 'it is kept');
  assert.equal(await page.locator('#theme').inputValue(), 'dark');
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.locator('#theme').selectOption('light');
  assert.equal(await paper(), light);
  await page.locator('#theme').selectOption('');
  assert.equal(await paper(), dark);
});
