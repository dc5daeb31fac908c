// States of a page, visited one after another by keyboard alone: the focus is seen and given back, the accessibility checker finds
// nothing, in light and dark, and nothing is wider than the page.
import assert from 'node:assert/strict';
import { findings } from './axe.mjs';
import { picture } from './picture.mjs';

/** A phone and a desktop. */
export const WIDTHS = [390, 1280];
export const size = (width) => ({ viewport: { width, height: 800 }, reducedMotion: 'reduce' });

/** What the browser says of answers that a state is about. */
const EXPECTED = /ERR_CONNECTION_(REFUSED|RESET)|HTTP Authentication failed|status of (401|403|422)/;

/** Opens the list of conversations, where it is not always shown. */
export async function drawer({ page, keys }) {
  if (await page.locator('#menu').isVisible() && !(await page.evaluate(() => document.body.classList.contains('drawer-open')))) await keys.activate('#menu');
}
/** Closes it. */
export async function noDrawer({ page, keys }) {
  if (await page.evaluate(() => document.body.classList.contains('drawer-open'))) await keys.press('Escape');
}
/** Activates a button in it. */
export const inDrawer = (id) => async (on) => {
  await drawer(on);
  await on.keys.activate(id);
};
/** A panel that a button at the top opens. */
export const panel = (name) => ({ open: ({ keys }) => keys.activate(`#${name}-button`), shows: `#${name}:popover-open` });
/** Chooses an item of the menu of the conversation; without one, opens it. */
export const menu = (item) => async ({ keys, page }) => {
  await keys.activate('#conversation-button');
  await page.locator('#conversation-menu:popover-open').waitFor();
  for (let downs = 0; item && !(await page.evaluate((name) => document.activeElement.textContent.startsWith(name), item)); downs += 1) {
    assert.ok(downs < 10, `no ${item} in the menu`);
    await keys.press('ArrowDown');
  }
  if (item) await keys.press('Enter');
};
export const nothing = () => {};

/**
 * Visits these states, in order, on one page. `open` leads there, `shows` is there then. Without `leave`, Escape closes it and the
 * focus comes back to what opened it, or to `back`; otherwise the state stays, and `leave` goes on.
 */
export async function visit(on, states, width) {
  const { page } = on;
  for (const { name, open, shows, leave, back } of states) {
    await open(on);
    await page.locator(shows).first().waitFor();
    await on.keys.isSeen(name).catch(async (error) => {
      await picture(page, `unseen-${name}-${width}`);
      throw error;
    });
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      // Colours alone differ.
      assert.deepEqual(await findings(page, colorScheme === 'dark' ? ['color-contrast'] : undefined), [], `${name}, ${colorScheme}`);
      await picture(page, `state-${name}-${width}-${colorScheme}`);
    }
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}: it fits`);
    await (leave ?? (({ keys }) => keys.press('Escape')))(on);
    if (!leave || back) await on.keys.isBack(name, back);
  }
  assert.deepEqual(page.wrongs.filter((wrong) => !EXPECTED.test(wrong)), []);
}
