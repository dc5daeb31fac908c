// The dialog that shows usage: with the real server, and with the figures of many days.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { findings } from './support/axe.mjs';
import { send } from './support/browser.mjs';
import { picture } from './support/picture.mjs';
import { served } from './support/served.mjs';
import { stage } from './support/stage.mjs';

const config = (url) => `
[retry]
schedule = "exponential"
base_ms = 1

[[price]]
model = "sim/*"
input = 1000
output = 2000

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]
`;

const cells = (page, table) => page.locator(`${table} tr`).evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));

describe('with the real server', () => {
  const on = served(config, 1, { isKept: true });

  test('an answer that survived a failure is counted as such, also after a kill', async () => {
    const { page, provider } = on;
    provider.usage = { prompt_tokens: 1500, completion_tokens: 20 };
    provider.says(null);
    provider.says('Hello');
    await send(page, 'Hi');
    await on.settled();
    await page.locator('#usage-button').click();
    await page.locator('#usage-models tbody tr').waitFor();
    await on.page.keyboard.press('Escape');
    await on.crash();
    await page.locator('#usage-button').click();
    await page.locator('#usage-models tbody tr').waitFor();
    assert.match(await page.locator('#usage-summary').textContent(), /^1 turn or call\. 1 of 2 requests were refused or failed\. 1 survived a failure\./);
    const [head, row, total] = await cells(page, '#usage-models');
    assert.deepEqual(head, ['Model', 'Turns', 'Survived', 'Failed', 'Waited', 'Cost', 'Requests', 'Refused', 'Input', 'Cached', 'Output', 'Reasoning']);
    assert.deepEqual([row[0], ...row.slice(5)], ['sim/one', '1.54', '2', '1', '1,500', '0', '20', '0']);
    assert.deepEqual(row.slice(1, 4), ['1', '1', '0']);
    assert.deepEqual(total.slice(1), row.slice(1));
    assert.equal(await page.locator('#usage-plot g').count(), 1);
    await page.locator('#usage-measure').selectOption('cost');
    assert.match(await page.locator('#usage-plot title').textContent(), /^\d{4}-\d\d-\d\d: 1\.54$/);
    await page.locator('#usage summary').click();
    assert.equal((await cells(page, '#usage-by-day')).length, 3);
    assert.deepEqual(await findings(page), []);
    await page.locator('#usage-close').click();
    assert.ok(await page.locator('#usage').isHidden());
  });
});

describe('with figures of many days', () => {
  const on = stage();
  const figures = (turns) => ({
    turns, survived: Math.floor(turns / 3), failed: turns % 2, waitedMs: turns * 61_000, requests: turns * 2, refusals: turns,
    inputTokens: turns * 12_345, outputTokens: turns * 678, cacheReadTokens: turns * 9_000, cacheWriteTokens: 0, reasoningTokens: turns * 100,
  });
  const at = (days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
  const usage = (by, from) => {
    const days = Math.round((Date.parse(at(0)) - Date.parse(from)) / 86_400_000);
    const turns = (day) => (day % 6 === 5 ? 0 : 40 - (day % 30) + (day % 7) * 5);
    const byDay = Array.from({ length: days + 1 }, (_, day) => ({ day: at(days - day), ...figures(turns(days - day)), cost: turns(days - day) / 9 }));
    const byModel = [
      { model: 'openai/gpt-5-mini', ...figures(800), cost: 12.5 },
      { caller: 'ann', model: 'claude/claude-sonnet-5-5', ...figures(300), cost: 99 },
      { caller: 'ci', model: 'local/<b>llama</b>', ...figures(30), unpriced: ['local/<b>llama</b>'] },
    ];
    return { from, to: at(0), by: by.split(','), rows: by === 'day' ? byDay : byModel, total: { ...figures(1130), cost: 111.5, unpriced: ['local/<b>llama</b>'] } };
  };
  beforeEach(() => (on.server.usage = usage));

  for (const colorScheme of ['light', 'dark']) {
    for (const width of [390, 1280]) {
      test(`at ${width} pixels, ${colorScheme}`, async () => {
        await on.open('/', { viewport: { width, height: 900 }, colorScheme });
        const { page } = on;
        if (width < 760) await page.locator('#menu').click();
        await page.locator('#usage-button').click();
        await page.locator('#usage-models tbody tr').nth(2).waitFor();
        await picture(page, `usage-${width}-${colorScheme}`);
        assert.deepEqual(await findings(page), []);
        const [dialog, shown] = await page.locator('#usage').evaluate((node) => [node.scrollWidth - node.clientWidth, innerWidth - node.offsetWidth]);
        assert.ok(dialog <= 0 && shown >= 0, `nothing is wider than the dialog: ${dialog} ${shown}`);
        assert.equal(await page.locator('#usage b').count(), 0);
        const rows = await cells(page, '#usage-models');
        assert.deepEqual(rows.slice(1).map((row) => row.at(-7)), ['12.50', '99', 'no price', '111.50+']);
        assert.equal(await page.locator('#usage-prices').textContent(), 'Without a price: local/<b>llama</b>.');
        await page.locator('#usage-days').selectOption('7');
        await page.waitForFunction(() => document.querySelectorAll('#usage-by-day tbody tr').length === 7);
        assert.equal(await page.locator('#usage-plot g').count(), 6, 'a day without turns has no bar');
        assert.deepEqual(page.wrongs, []);
      });
    }
  }
});
