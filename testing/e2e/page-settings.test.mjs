// The retry settings on the page, with the real server: `EVERTURN_BIN=<binary> node --test page-settings.test.mjs`.
// The model `demo/flaky` is refused twice and then answers; without settings the waits are 5 s and 10 s.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { findings } from './support/axe.mjs';
import { startServer } from './support/binary.mjs';
import { answerText, launch, openPage, send } from './support/browser.mjs';
import { picture } from './support/picture.mjs';

const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };

let server;
let browser;
let page;
let pages;

before(async () => {
  browser = await launch();
});
after(() => browser?.close());
beforeEach(async () => {
  server = await startServer();
  pages = [];
});
afterEach(async () => {
  for (const each of pages) await each.context().close();
  await server?.stop();
});

async function open(path = '/', options) {
  page = await openPage(browser, `${server.url}${path}`, options);
  pages.push(page);
  await page.locator('#model option').first().waitFor({ state: 'attached' });
  return page;
}

const panel = () => page.locator('#settings');

/** Opens the settings, and waits until they are shown. */
async function openSettings() {
  await page.locator('#settings-button').click();
  await page.locator('#retry-preset option').first().waitFor({ state: 'attached' });
}

/** The settings stored by the server, globally or for one conversation. */
const kept = async (path = 'retry') => (await (await fetch(`${server.url}/${path}`)).json()).set;

/** Performs an action, and waits for the server's response. */
async function changes(act) {
  const answered = page.waitForResponse((response) => response.request().method() === 'PATCH');
  await act();
  const response = await answered;
  await response.finished();
  return response.status();
}

/** Types a number, and leaves the field. */
const write = (id, text) =>
  changes(async () => {
    await page.locator(id).fill(text);
    await page.locator(id).blur();
  });

const isShown = (id) => page.locator(id).isVisible();

/** Waits until a field shows this value. */
const shows = (id, value) => page.waitForFunction(([id, value]) => document.querySelector(id).value === value, [id, value]);

/** The first wait of a turn, as shown by the banner. */
async function firstWait() {
  await page.waitForFunction(() => !document.querySelector('#banner').hidden);
  const { retry } = await (await fetch(`${server.url}/conversations/${conversationId()}/status`)).json();
  return retry.delayMs;
}

const conversationId = () => /#\/c\/(.+)$/.exec(page.url())[1];

/** Begins a turn that waits, in the open conversation. */
async function begin(text) {
  await send(page, text);
  await page.waitForFunction(() => /#\/c\/./.test(location.hash));
  return firstWait();
}

test('global settings apply to the next turn and are stored', async () => {
  await open();
  await openSettings();
  assert.equal(await page.locator('[value=conversation]').isDisabled(), true, 'there is none yet');
  assert.equal(await page.locator('[value=all]').isChecked(), true);
  assert.equal(await page.locator('#retry-enabled').isChecked(), true);
  assert.equal(await isShown('#retry-base'), false, 'patient has no figures');
  assert.equal(await changes(() => page.locator('#retry-preset').selectOption('interactive')), 200);
  await page.locator('#retry-base').waitFor();
  assert.equal(await page.locator('#retry-base').getAttribute('placeholder'), '2');
  assert.equal(await write('#retry-base', '60.5'), 200);
  assert.equal(await write('#retry-count', '7'), 200);
  assert.deepEqual(await kept(), { preset: 'interactive', baseDelayMs: 60_500, maxRetries: 7 });
  await page.keyboard.press('Escape');
  assert.equal(await panel().isVisible(), false);
  assert.equal(await begin('one'), 60_500);
  assert.match(await page.locator('#wait-note').textContent(), /Retry 1 of 7/);
  // A reload shows stored settings; patient resets the numbers that it does not use.
  await page.reload();
  await openSettings();
  await page.locator('.scopes span', { hasText: 'All' }).click();
  await shows('#retry-base', '60.5');
  await changes(() => page.locator('#retry-preset').selectOption('patient'));
  assert.deepEqual(await kept(), { preset: 'patient' });
  await changes(() => page.locator('#settings-reset').click());
  assert.deepEqual(await kept(), {});
  await page.locator('#settings-reset:disabled').waitFor();
  assert.deepEqual(page.wrongs, []);
});

test('a conversation has its own settings, which other pages see', async () => {
  await open();
  assert.equal(await begin('one'), 5000);
  const [id, first] = [conversationId(), page];
  const second = await open(`/#/c/${id}`);
  await openSettings();
  page = first;
  await openSettings();
  assert.equal(await page.locator('[value=conversation]').isChecked(), true, 'the one that is open');
  await changes(() => page.locator('#retry-preset').selectOption('exponential'));
  await write('#retry-cap', '0');
  page = second;
  await shows('#retry-preset', 'exponential');
  await shows('#retry-cap', '0');
  assert.deepEqual(await kept(), {});
  assert.deepEqual(await kept(`conversations/${id}/retry`), { preset: 'exponential', maxDelayMs: 0 });
  // Turning retries off ends the wait at once.
  page = first;
  await changes(() => page.locator('#retry-enabled').uncheck());
  await page.waitForFunction(() => document.querySelector('#banner').hidden);
  await page.locator('.again').waitFor();
  assert.deepEqual([...first.wrongs, ...second.wrongs], []);
});

test('settings of a conversation are changed in it alone, wherever the page goes meanwhile', async () => {
  await open();
  await begin('one');
  const first = conversationId();
  await page.locator('#new').click();
  await begin('two');
  const second = conversationId();
  const of = (id) => kept(`conversations/${id}/retry`);
  for (const [at, elsewhere] of ['#/', `#/c/${first}`].entries()) {
    await page.evaluate((id) => (location.hash = `#/c/${id}`), second);
    await openSettings();
    await changes(() => page.locator('#retry-preset').selectOption('interactive'));
    await page.locator('#retry-count').fill(String(at + 4));
    assert.equal(await changes(() => page.evaluate((hash) => (location.hash = hash), elsewhere)), 200);
    await panel().waitFor({ state: 'hidden' });
    assert.deepEqual([await kept(), await of(first)], [{}, {}], elsewhere);
    assert.equal((await of(second)).maxRetries, at + 4);
  }
  // One that was deleted elsewhere has no settings any more.
  await openSettings();
  await fetch(`${server.url}/conversations/${first}`, { method: 'DELETE' });
  await page.locator('.notice').waitFor();
  assert.equal(await changes(() => page.locator('#retry-preset').selectOption('interactive')), 404);
  assert.deepEqual(await kept(), {});
});

test('invalid settings are reported and change nothing', async () => {
  await open();
  await openSettings();
  await changes(() => page.locator('#retry-preset').selectOption('interactive'));
  assert.equal(await write('#retry-base', '400'), 400);
  const problem = 'The first wait is 400 s here, but the longest wait allows 300 s: lower the first wait, or raise the longest wait (0 = no limit)';
  await page.locator('#settings-problem').waitFor();
  assert.equal(await page.locator('#settings-problem').textContent(), problem);
  await shows('#retry-base', '');
  assert.deepEqual(await kept(), { preset: 'interactive' });
  assert.equal(await write('#retry-base', '4'), 200);
  await page.locator('#settings-problem').waitFor({ state: 'hidden' });
});

/** Appends a fallback model. */
const add = (model) =>
  changes(async () => {
    await page.locator('#fallback-add').selectOption(model);
    await page.locator('#fallback-do').click();
  });

/** The listed fallback models of a model. */
const listed = () => page.locator('#fallback-list .name').allTextContents();

test('fallback models are set, shown and cleared', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'everturn-settings-'));
  const path = join(folder, 'config.toml');
  const provider = '[[provider]]\nname = "a"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["one", "two", "three"]\n';
  await writeFile(path, `${provider}[[route]]\nname = "only"\ntargets = ["a/one"]\n`);
  const configured = await startServer(['--config', path]);
  try {
    await server.stop();
    server = configured;
    await open();
    await openSettings();
    await page.locator('#fallback').waitFor();
    await page.locator('#fallback-model').selectOption('a/one');
    assert.deepEqual(await listed(), []);
    assert.equal(await add('a/three'), 200);
    await page.locator('#fallback-list li').nth(0).waitFor();
    assert.equal(await add('a/two'), 200);
    assert.deepEqual(await kept(), { fallbackChains: { 'a/one': ['a/three', 'a/two'] } });
    // A route that asks the same model is refused, with an error in the page's own terms.
    assert.equal(await add('route/only'), 400);
    await page.locator('#settings-problem').waitFor();
    assert.equal(
      await page.locator('#settings-problem').textContent(),
      'The fallback chain of a/one would lead back to it: route/only asks no other model',
    );
    assert.deepEqual(await listed(), ['a/three', 'a/two']);
    // Each model has its own list.
    await page.locator('#fallback-model').selectOption('a/two');
    assert.deepEqual(await listed(), []);
    assert.equal(await add('a/one'), 200);
    await page.reload();
    await openSettings();
    await page.locator('[value=all]').check({ force: true });
    await page.locator('#fallback-model').selectOption('a/one');
    await page.locator('#fallback-list li').nth(1).waitFor();
    assert.deepEqual(await listed(), ['a/three', 'a/two']);
    await changes(() => page.locator('#fallback-list').getByRole('button', { name: 'Remove a/three' }).click());
    assert.deepEqual(await kept(), { fallbackChains: { 'a/one': ['a/two'], 'a/two': ['a/one'] } });
    await page.locator('#fallback-list li').nth(1).waitFor({ state: 'detached' });
    await changes(() => page.locator('#fallback-list button').click());
    await page.locator('#fallback-model').selectOption('a/two');
    await changes(() => page.locator('#fallback-list button').click());
    assert.deepEqual(await kept(), {});
    assert.deepEqual(page.wrongs.filter((wrong) => !wrong.includes('400')), []);
  } finally {
    await rm(folder, { recursive: true });
  }
});

for (const width of [390, 1280]) {
  for (const colorScheme of ['light', 'dark']) {
    test(`all settings are set by keyboard alone, ${width} px, ${colorScheme}`, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'everturn-settings-'));
      const path = join(folder, 'config.toml');
      await writeFile(path, '[[provider]]\nname = "a"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["one", "two", "three"]\n');
      const configured = await startServer(['--config', path]);
      try {
        await server.stop();
        server = configured;
        await open('/', { colorScheme, reducedMotion: 'reduce', viewport: { width, height: 800 } });
        const { keyboard } = page;
        const isFocused = (id) => page.waitForFunction((wanted) => document.activeElement.id === wanted, id);
        const tabTo = async (id) => {
          await keyboard.press('Tab');
          await isFocused(id);
        };
        const press = (key) => changes(() => keyboard.press(key));
        const isClean = async (state) => {
          assert.deepEqual(await findings(page), [], state);
          await picture(page, `settings-${state}-${width}-${colorScheme}`);
        };
        await page.locator('#settings-button').focus();
        await keyboard.press('Enter');
        await page.locator('#retry-preset option').first().waitFor({ state: 'attached' });
        await keyboard.press('Tab');
        await page.waitForFunction(() => document.activeElement.value === 'all');
        await tabTo('retry-enabled');
        await press('Space');
        await press('Space');
        await tabTo('retry-preset');
        await changes(() => keyboard.type('Interactive'));
        await page.locator('#retry-base').waitFor();
        await isFocused('retry-preset');
        await tabTo('retry-count');
        await keyboard.type('7');
        await changes(() => tabTo('retry-base'));
        await keyboard.type('4000');
        await changes(() => tabTo('retry-cap'));
        await page.locator('#settings-problem').waitFor();
        await isClean('refused');
        await keyboard.type('60');
        await changes(() => tabTo('retry-revert'));
        await page.locator('#settings-problem').waitFor({ state: 'hidden' });
        await changes(() => keyboard.type('Never'));
        await tabTo('fallback-model');
        await tabTo('fallback-add');
        await keyboard.press('ArrowDown');
        await tabTo('fallback-do');
        await press('Enter');
        await page.locator('#fallback-list li').nth(0).waitFor();
        await isFocused('fallback-do');
        await press('Enter');
        await page.locator('#fallback-list li').nth(1).waitFor();
        await isFocused('fallback-model'); // there is nothing to add any more
        assert.deepEqual(await kept(), { enabled: true, preset: 'interactive', maxRetries: 7, maxDelayMs: 60_000, revert: 'never', fallbackChains: { 'a/one': ['a/three', 'a/two'] } });
        await isClean('all');
        await keyboard.press('Tab');
        await press('Enter');
        await page.locator('#fallback-list li').nth(1).waitFor({ state: 'detached' });
        assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), 'Remove a/two');
        await press('Enter');
        await isFocused('fallback-do');
        await tabTo('settings-reset');
        await press('Enter');
        await page.locator('#settings-reset:disabled').waitFor();
        assert.deepEqual(await kept(), {});
        await isFocused('retry-enabled');
        await keyboard.press('Escape');
        await panel().waitFor({ state: 'hidden' });
        await isFocused('settings-button');
        assert.deepEqual(page.wrongs.filter((wrong) => !wrong.includes('400')), []);
      } finally {
        await rm(folder, { recursive: true });
      }
    });
  }
}

test('returning to the first model can be set for schedules that support it', async () => {
  await open();
  await openSettings();
  assert.equal(await isShown('#retry-revert'), false);
  await changes(() => page.locator('#retry-preset').selectOption('interactive'));
  await page.locator('#retry-revert').waitFor();
  await shows('#retry-revert', 'cooldown-expiry');
  assert.equal(await changes(() => page.locator('#retry-revert').selectOption('never')), 200);
  assert.deepEqual(await kept(), { preset: 'interactive', revert: 'never' });
  await changes(() => page.locator('#retry-preset').selectOption('patient'));
  assert.deepEqual(await kept(), { preset: 'patient' });
});

test('Escape closes the settings, and the turn continues', async () => {
  await open();
  await begin('one');
  await openSettings();
  await page.keyboard.press('Escape');
  await panel().waitFor({ state: 'hidden' });
  assert.equal(await page.locator('#banner').isVisible(), true);
  await page.locator('#retry-now').click();
  await page.waitForFunction(() => document.querySelector('#wait-note').textContent.startsWith('Retry 2'));
  await page.locator('#retry-now').click();
  await page.waitForFunction(() => document.querySelector('.answer'));
  assert.notEqual(await answerText(page), '');
});

test('on a phone the settings fit the screen', async () => {
  await open('/', PHONE);
  await openSettings();
  await page.locator('#retry-preset').selectOption('interactive');
  await page.locator('#retry-base').waitFor();
  const box = await panel().boundingBox();
  assert.ok(box.x >= 0 && box.x + box.width <= 360, JSON.stringify(box));
  assert.ok(box.y >= 0 && box.y + box.height <= 740, JSON.stringify(box));
  const overflows = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.equal(overflows, false);
});
