// Every panel and dialog through the accessibility checker, on a phone and a desktop, light and dark. EVERTURN_SHOTS names a
// directory for screenshots. The retry settings, providers and instructions have tests of their own that do the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findings } from './support/axe.mjs';
import { openPage, send } from './support/browser.mjs';
import { picture } from './support/picture.mjs';
import { served } from './support/served.mjs';
import { stage } from './support/stage.mjs';

const config = (url) => `
[tools]
dice = true

[tools.policy]
roll_dice = "ask"

[[mcp]]
name = "away"
url = "http://127.0.0.1:9/mcp"

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]
`;
const LOOKS = [390, 1280].flatMap((width) => ['light', 'dark'].map((colorScheme) => ({ width, colorScheme })));
const options = ({ width, colorScheme }) => ({ colorScheme, reducedMotion: 'reduce', viewport: { width, height: 800 } });

/** Checks a state of the page. */
const looker = ({ width, colorScheme }) => async (page, state) => {
  assert.deepEqual(await findings(page), [], state);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${state}: it fits`);
  await picture(page, `panel-${state}-${width}-${colorScheme}`);
};

const real = served(config, 1);
for (const look of LOOKS) {
  test(`panels of a conversation, ${look.width} px, ${look.colorScheme}`, async () => {
    const page = await openPage(real.browser, real.server.url, options(look));
    const looks = looker(look);
    const press = (id) => page.locator(id).press('Enter');
    real.provider.says({ calls: [{ name: 'roll_dice', input: { sides: 20, count: 2 } }] });
    await page.locator('#model option').first().waitFor({ state: 'attached' });
    await send(page, 'Two dice');
    await page.locator('.approval').waitFor();
    await looks(page, 'approval');
    real.provider.says('There they are.');
    await page.getByRole('button', { name: /conversation/ }).and(page.locator('.approval button')).press('Enter');
    await page.locator('#allowed-button').waitFor();
    await page.locator('.turn[aria-busy=false] div.answer').waitFor();
    for (const name of ['allowed', 'tools', 'settings']) {
      await press(`#${name}-button`);
      await page.locator(`#${name}:popover-open`).waitFor();
      if (name === 'tools') await page.locator('.tool-source .reason').waitFor();
      await looks(page, name);
      await page.keyboard.press('Escape');
      await page.locator(`#${name}`).waitFor({ state: 'hidden' });
    }
    for (const action of ['', 'Rename', 'Delete']) {
      await press('#conversation-button');
      await page.locator('#conversation-menu').waitFor();
      if (action) await page.locator('#conversation-menu button', { hasText: action }).press('Enter');
      await looks(page, `menu ${action}`.trim());
      await page.keyboard.press('Escape');
    }
    if (await page.locator('#menu').isVisible()) {
      await press('#menu');
      await page.locator('#list a').waitFor();
      await looks(page, 'drawer');
    }
    await press('#help');
    await looks(page, 'shortcuts');
    await page.keyboard.press('Escape');
    assert.deepEqual(page.wrongs, []);
    await page.context().close();
  });
}

const on = stage();
for (const look of LOOKS) {
  test(`panels of a cluster and of calls, ${look.width} px, ${look.colorScheme}`, async () => {
    const looks = looker(look);
    const node = (id) => ({ id, name: `${id}.example:4777`, version: '0.1.0', startedAt: 1_790_000_000_000, turns: 2 });
    const call = { id: 'call-1', program: 'claude-cli/2.1', session: 's-1', model: 'sonnet', target: 'anthropic/sonnet', phase: 'waiting', startedAt: 1, retries: 4, waitedMs: 0, isListenedTo: true };
    on.server.cluster = { node: 'b', nodes: [node('a'), node('b')] };
    on.server.calls = [{ ...call, nextAt: Date.now() + 3_600_000, category: 'overloaded', because: 'HTTP 529: Overloaded' }];
    on.server.targets = [{ target: 'demo/flaky', until: new Date(2030, 0, 1).getTime(), category: 'rate_limited' }];
    await on.open('/', options(look));
    await on.page.locator('#nodes-button').waitFor(); // which it is once the servers are known
    await on.page.locator('#nodes-button').press('Enter');
    await on.page.locator('#node-list li').first().waitFor();
    await looks(on.page, 'nodes');
    await on.page.keyboard.press('Escape');
    if (await on.page.locator('#menu').isVisible()) await on.page.locator('#menu').press('Enter');
    await on.page.locator('#call-list li').waitFor();
    await looks(on.page, 'calls and targets');
  });
}
