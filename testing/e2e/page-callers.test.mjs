// The dialog of callers: with the real server, and with many callers.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import { findings } from './support/axe.mjs';
import { picture } from './support/picture.mjs';
import { served } from './support/served.mjs';
import { stage } from './support/stage.mjs';

const config = (url) => `
[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]
`;

/** Presses a button by the keyboard. */
const press = async (page, button) => {
  await page.locator(button).focus();
  await page.keyboard.press('Enter');
};
const token = async (page, of) => {
  await page.locator('#caller-token', { hasText: `The token of ${of}` }).waitFor();
  return page.locator('#caller-token code').textContent();
};
const isFocused = (page, label) => page.waitForFunction((wanted) => document.activeElement.ariaLabel === wanted, label);
const row = (page, name) => page.locator('#caller-list li', { has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) });

describe('with the real server', () => {
  const on = served(config, 1, { isKept: true });
  const ask = (path, bearer, body) =>
    fetch(`${on.server.url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'content-type': 'application/json', ...(bearer && { authorization: `Bearer ${bearer}` }) },
      body: body && JSON.stringify(body),
    });
  /** Waits until the server answers this token so: it notices changes within a second. */
  const answers = async (bearer, status) => {
    for (let last; last !== status; ) last = (await ask('/models', bearer)).status;
  };

  test('an administrator makes, limits, replaces and revokes tokens, by the keyboard', async () => {
    const { page } = on;
    await press(page, '#callers-button');
    await page.locator('#caller-form').waitFor();
    await page.locator('#caller-name').fill('ann');
    await page.keyboard.press('Enter');
    await page.locator('#callers-problem', { hasText: 'nobody could sign in as the administrator' }).waitFor();
    await page.locator('#caller-name').fill('boss');
    await page.locator('#caller-scope').selectOption('admin');
    const refused = page.waitForResponse((response) => response.status() === 401);
    await press(page, '#caller-save');
    const boss = await token(page, 'boss');
    assert.match(boss, /^evt_[0-9a-f]{64}$/);
    // From now on, everybody needs a token, which the page asks for once this one was read.
    await answers(undefined, 401);
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await refused;
    assert.equal(await page.evaluate(() => document.activeElement.id), 'caller-token');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !document.querySelector('#caller-token').textContent); // a dialog tells later that it was closed
    await press(page, '#callers-button'); // unless the token is asked for already
    await page.locator('#token-field').fill(boss);
    await page.keyboard.press('Enter');
    await page.locator('#token').waitFor({ state: 'hidden' });
    if (!(await page.locator('#callers').isVisible())) await press(page, '#callers-button');
    await row(page, 'boss').getByText('administrator · valid').waitFor();
    assert.equal(await row(page, 'boss').getByRole('button', { name: 'Limits' }).count(), 0, 'it has none');

    await page.locator('#caller-name').fill('ann');
    await press(page, '#caller-more summary');
    await page.locator('#caller-tokensPerDay').fill('5000');
    await page.locator('#caller-parallel').fill('2');
    await press(page, '#caller-save');
    const ann = await token(page, 'ann');
    await row(page, 'ann').getByText('Limits: 5,000 tokens per day, 2 calls at once').waitFor();
    await answers(ann, 200);
    on.provider.usage = { prompt_tokens: 1500, completion_tokens: 20 };
    on.provider.says('Hello');
    await (await ask('/chat', ann, { message: 'Hi' })).text();
    assert.equal((await ask('/callers', ann)).status, 403);
    // The administrator sees whose conversation it is.
    await page.locator('#list time', { hasText: /^ann · / }).waitFor();

    await row(page, 'ann').getByRole('button', { name: 'Limits' }).press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'caller-requestsPerMinute');
    assert.equal(await page.locator('#caller-tokensPerDay').inputValue(), '5000');
    await page.keyboard.type('9');
    await page.locator('#caller-parallel').fill('');
    await page.keyboard.press('Enter');
    await row(page, 'ann').getByText('Limits: 9 requests per minute, 5,000 tokens per day').waitFor();
    await isFocused(page, 'Limits: ann');
    await row(page, 'ann').getByText('Today: 1 requests, 1,520 tokens').waitFor();

    await row(page, 'ann').getByRole('button', { name: 'New token' }).press('Enter');
    await press(page, 'dialog.ask .danger');
    await page.waitForFunction((known) => document.querySelector('#caller-token code')?.textContent !== known, ann);
    const other = await token(page, 'ann');
    await answers(ann, 401);
    await answers(other, 200);
    await row(page, 'ann').getByRole('button', { name: 'Revoke' }).press('Enter');
    await press(page, 'dialog.ask .danger');
    await row(page, 'ann').getByText('conversations and calls · revoked').waitFor();
    await answers(other, 401);
    assert.equal(await row(page, 'ann').getByRole('button', { name: 'Revoke' }).count(), 0);
    await isFocused(page, 'Limits: ann'); // as its own button is gone
    const held = await page.evaluate(() => document.documentElement.outerHTML + JSON.stringify(localStorage));
    assert.ok(!held.includes(ann), 'a former token is nowhere on the page');
    assert.deepEqual(await findings(page), []);

    await page.keyboard.press('Escape');
    await page.locator('#list a', { hasText: 'ann · ' }).click();
    await page.locator('.answer', { hasText: 'Hello' }).waitFor();
  });
});

describe('with many callers', () => {
  const on = stage();
  const callers = [
    { name: 'boss', scopes: ['admin'], status: 'valid', configured: true },
    { name: 'ann', scopes: ['chat', 'calls'], status: 'valid', until: '2027-01-31', configured: false, tokensPerDay: 5_000_000, moneyPerDay: 2.5, parallel: 8 },
    { name: 'a-name-of-thirty-two-characters-', scopes: ['calls'], status: 'expired', until: '2026-01-31T12:00:00Z', configured: false, requestsPerMinute: 60, priority: 'background', models: ['openai/<b>gpt</b>-*', 'route/main'] },
    { name: 'gone', scopes: ['chat'], status: 'revoked', configured: false },
  ];
  const zero = { turns: 0, survived: 0, failed: 0, waitedMs: 0, refusals: 0, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  beforeEach(() => {
    on.server.callers = { callers };
    on.server.usage = (by, from) => ({ from, to: from, by: [by], rows: [{ caller: 'ann', ...zero, requests: 1234, inputTokens: 900_000, outputTokens: 50_000, cost: 1.25 }], total: {} });
  });

  for (const colorScheme of ['light', 'dark']) {
    for (const width of [390, 1280]) {
      test(`at ${width} pixels, ${colorScheme}`, async () => {
        await on.open('/', { viewport: { width, height: 1000 }, colorScheme });
        const { page } = on;
        if (width < 760) await page.locator('#menu').click();
        await page.locator('#callers-button').click();
        await page.locator('#caller-list li').nth(3).waitFor();
        await picture(page, `callers-${width}-${colorScheme}`);
        assert.deepEqual(await findings(page), []);
        await isFocused(page, 'Limits: ann');
        await page.keyboard.press('Enter');
        await page.locator('#caller-title', { hasText: 'Limits of ann' }).waitFor();
        await picture(page, `callers-${width}-${colorScheme}-limits`);
        assert.deepEqual(await findings(page), []);
        const [dialog, shown] = await page.locator('#callers').evaluate((node) => [node.scrollWidth - node.clientWidth, innerWidth - node.offsetWidth]);
        assert.ok(dialog <= 0 && shown >= 0, `nothing is wider than the dialog: ${dialog} ${shown}`);
        assert.equal(await page.locator('#callers b').count(), 0);
        assert.equal(await row(page, 'boss').getByRole('button').count(), 0, 'it belongs to the configuration');
        assert.ok(await row(page, 'ann').getByText('Today: 1,234 requests, 950,000 tokens, cost 1.25').isVisible());
        assert.equal(await page.locator('#caller-moneyPerDay').inputValue(), '2.5');
        await press(page, '#caller-cancel');
        await isFocused(page, 'Limits: ann');
        assert.deepEqual(page.wrongs, []);
      });
    }
  }
});

describe('with callers of its configuration', () => {
  const caller = (name, scope, limit = '') => `
[[caller]]
name = "${name}"
scopes = ["${scope}"]
token_hash = "${createHash('sha256').update(`token of ${name}`).digest('hex')}"
${limit}
`;
  const callers = caller('ann', 'chat', 'tokens_per_day = 600') + caller('bot', 'calls');
  const on = served((url) => config(url) + callers, 0);
  const enter = async (text) => {
    await on.page.locator('#token-field').fill(text);
    await on.page.keyboard.press('Enter');
  };
  const isTold = (words) => on.page.locator('#token-note', { hasText: words }).waitFor();

  test('the page says why it asks for another token, and what a limit of its own keeps waiting', async () => {
    const { page, provider } = on;
    await enter('wrong');
    await isTold(/^This server does not know this token: .* Try another one\.$/);
    await enter('token of bot');
    await isTold(/^This token .* Try another one\.$/);
    await picture(page, 'token-refused');
    await enter('token of ann');
    await page.waitForFunction(() => document.querySelectorAll('#model option').length === 1);

    provider.usage = { prompt_tokens: 550, completion_tokens: 20 };
    provider.says('Hello');
    await page.locator('#prompt').fill('Hi');
    await page.keyboard.press('Enter');
    await on.settled();
    await page.locator('#prompt').fill('And now?');
    await page.keyboard.press('Enter');
    await page.locator('#wait-line', { hasText: /^Limit of this token reached, / }).waitFor();
    await page.locator('#wait-reason', { hasText: '600 tokens a day' }).waitFor();
    assert.equal(await page.locator('#retry-now').isVisible(), false, 'nothing skips it');
    await page.locator('#list', { hasText: 'Hi' }).waitFor();
    await picture(page, 'limit-of-token');
    assert.deepEqual(await findings(page), []);
  });
});
