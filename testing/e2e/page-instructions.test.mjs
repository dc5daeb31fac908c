// A conversation's system prompt and parameters: set on the page, kept by the server, used by the next turns.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findings } from './support/axe.mjs';
import { openPage, send } from './support/browser.mjs';
import { picture } from './support/picture.mjs';
import { served } from './support/served.mjs';

const config = (url) => `
system_prompt = "Be as configured."

[[provider]]
name = "chat"
base_url = "${url}"
api_key = "not-a-real-key"
models = ["model"]
`;
const on = served(config, 1, { isKept: true });
/** The last request, as it came. */
const body = () => JSON.parse(on.provider.requests.at(-1).body);
const button = () => on.page.locator('#instruct');

async function instruct({ prompt, temperature, tokens, effort }) {
  await button().click();
  if (prompt !== undefined) await on.page.locator('#instructions').getByLabel('System prompt').fill(prompt);
  if (temperature !== undefined) await on.page.locator('#instructions').getByLabel('Temperature').fill(temperature);
  if (tokens !== undefined) await on.page.locator('#instructions').getByLabel('Maximum answer').fill(tokens);
  if (effort !== undefined) await on.page.locator('#instructions').getByLabel('Reasoning effort').fill(effort);
  await on.page.locator('#instructions').getByRole('button', { name: 'Save' }).click();
  await on.page.locator('#instructions').waitFor({ state: 'hidden' });
}

async function ask(text, answers) {
  on.provider.says('An answer.');
  await send(on.page, text);
  await on.page.waitForFunction((wanted) => document.querySelectorAll('.settled .turn .answer').length === wanted, answers);
  return body();
}

test('a new conversation has them from its first message on, after a crash, and until they are changed', async () => {
  await instruct({ prompt: 'Answer in rhyme.', temperature: '0.25', tokens: '321', effort: 'low' });
  assert.equal(await button().getAttribute('aria-label'), 'Instructions and parameters: system prompt, temperature, longest answer, reasoning effort');
  const first = await ask('One', 1);
  assert.deepEqual([first.messages[0], first.temperature, first.max_completion_tokens ?? first.max_tokens, first.reasoning_effort], [{ role: 'system', content: 'Answer in rhyme.' }, 0.25, 321, 'low']);
  await on.crash();
  const second = await ask('Two', 2);
  assert.deepEqual([second.messages[0].content, second.temperature], ['Answer in rhyme.', 0.25]);
  await on.page.reload();
  await on.page.waitForFunction(() => document.querySelector('#instruct').classList.contains('set'));
  await button().click();
  await on.page.waitForFunction(() => document.querySelector('#own-prompt').value === 'Answer in rhyme.');
  await on.page.keyboard.press('Escape');
  await instruct({ prompt: '', temperature: '', effort: '' });
  const third = await ask('Three', 3);
  assert.deepEqual([third.messages[0].content, third.temperature, third.reasoning_effort], ['Be as configured.', undefined, undefined]);
  assert.equal(third.max_completion_tokens ?? third.max_tokens, 321);
  // Another conversation has none of it.
  await on.page.locator('#new').click();
  await on.page.locator('#instruct[aria-label="Instructions and parameters"]').waitFor();
  const other = await ask('Four', 1);
  assert.equal(other.messages[0].content, 'Be as configured.');
  // The server was killed: a request may have been under way, and those that followed found nobody.
  assert.deepEqual(on.page.wrongs.filter((wrong) => !/ERR_CONNECTION/.test(wrong)), []);
});

test('what is typed while they load stays, and so does what is saved', async () => {
  await ask('One', 1);
  const loads = [];
  await on.page.route('**/model-settings', (route) => (route.request().method() === 'GET' ? void loads.push(route) : route.continue()));
  await button().click();
  await on.page.locator('#own-prompt').fill('Answer in rhyme.');
  while (loads.length === 0) await new Promise(setImmediate);
  await loads.pop().fulfill({ json: { systemPrompt: 'Old.', temperature: 1 } });
  await on.page.waitForFunction(() => document.querySelector('#own-temperature').value === '1');
  assert.equal(await on.page.locator('#own-prompt').inputValue(), 'Answer in rhyme.');
  await on.page.keyboard.press('Escape');
  await button().click();
  while (loads.length === 0) await new Promise(setImmediate);
  await on.page.locator('#own-prompt').fill('Answer briefly.');
  await on.page.locator('#instructions').getByRole('button', { name: 'Save' }).click();
  await on.page.locator('#instructions').waitFor({ state: 'hidden' });
  const told = on.page.waitForResponse((response) => response.request().method() === 'GET');
  await loads.pop().fulfill({ json: {} });
  await told;
  await on.page.evaluate(() => new Promise(requestAnimationFrame));
  assert.match(await button().getAttribute('aria-label'), /system prompt/);
});

test('the API sets and reads them, and says what is wrong', async () => {
  const call = async (path, body) => {
    const response = await fetch(`${on.server.url}${path}`, body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    return { status: response.status, told: await response.text() };
  };
  on.provider.says('Yes.', 'Yes.');
  await call('/chat', { conversationId: 'mine', message: 'One', modelSettings: { temperature: 1.5 } });
  assert.equal(body().temperature, 1.5);
  assert.deepEqual(JSON.parse((await call('/conversations/mine/model-settings')).told), { temperature: 1.5 });
  // A request may have its own.
  await call('/chat', { conversationId: 'mine', message: 'Two', temperature: 0 });
  assert.equal(body().temperature, 0);
  for (const [settings, why] of [[{ temperature: 3 }, /between 0 and 2/], [{ maxOutputTokens: 0 }, /at least 1/]]) {
    const { status, told } = await call('/conversations/mine/model-settings', settings);
    assert.ok(status >= 400 && status < 500 && why.test(told), `${status} ${told}`);
  }
  assert.equal((await call('/conversations/none/model-settings')).status, 404);
  assert.equal((await call('/conversations/none/model-settings', { temperature: 1 })).status, 404);
  assert.deepEqual(JSON.parse((await call('/conversations/mine/model-settings', {})).told), {});
});

for (const colorScheme of ['light', 'dark']) {
  for (const width of [390, 1280]) {
    test(`the dialog can be used by keyboard, and nothing is found, ${width} px, ${colorScheme}`, async () => {
      const page = await openPage(on.browser, on.server.url, { colorScheme, reducedMotion: 'reduce', viewport: { width, height: 800 } });
      await page.locator('#instruct').focus();
      await page.keyboard.press('Enter');
      await page.keyboard.type('Be brief.');
      await page.keyboard.press('Tab');
      await page.keyboard.type('0.5');
      assert.deepEqual(await findings(page), []);
      await picture(page, `instructions-${width}-${colorScheme}`);
      await page.keyboard.press('Enter');
      await page.locator('#instructions').waitFor({ state: 'hidden' });
      assert.equal(await page.evaluate(() => document.activeElement.id), 'instruct');
      assert.equal(await page.locator('#instruct').getAttribute('aria-label'), 'Instructions and parameters: system prompt, temperature');
      assert.deepEqual(await findings(page), []);
      await page.context().close();
    });
  }
}
