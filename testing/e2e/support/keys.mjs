// A page without a mouse: the focus is moved by Tab, and must be seen.
import assert from 'node:assert/strict';

/** Longest way by Tab. */
const MOST = 150;

/** What has the focus, and whether a person sees that: it is in view, uncovered and marked. */
const focused = () => {
  const node = document.activeElement;
  const isMarked = (each) => each && (getComputedStyle(each).outlineStyle !== 'none' || getComputedStyle(each).boxShadow !== 'none');
  const { top, bottom, left, right } = (node.closest('label') ?? node).getBoundingClientRect();
  const [x, y] = [(Math.max(left, 0) + Math.min(right, innerWidth)) / 2, (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2];
  const over = document.elementFromPoint(x, y);
  const isSeen = over !== null && (node.contains(over) || over.contains(node) || over.closest('label')?.contains(node) === true);
  const isInput = node.matches('input, label *');
  return { name: `${node.nodeName} ${node.id || node.ariaLabel || node.className || node.textContent.slice(0, 40)}`, isBody: node === document.body, isSeen, isMarked: isMarked(node) || isMarked(node.closest('.field')) || (isInput && isMarked(node.nextElementSibling)) };
};

export function keysOf(page) {
  const { keyboard } = page;
  const isAt = (selector, name) =>
    page.evaluate(([wanted, words]) => {
      const node = document.activeElement;
      return node.matches(wanted) && (!words || (node.ariaLabel ?? node.textContent).includes(words));
    }, [selector, name]);
  const keys = {
    /** What was activated last. */
    opener: null,
    press: async (...pressed) => {
      for (const key of pressed) await keyboard.press(key);
    },
    type: (text) => keyboard.type(text),
    /** Moves the focus to an element, or to the first one with this name. */
    to: async (selector, name) => {
      await page.locator(selector, name && { hasText: name }).or(page.locator(`${selector}[aria-label*="${name}"]`)).first().waitFor();
      for (let presses = 0; !(await isAt(selector, name)); presses += 1) {
        assert.ok(presses < MOST, `Tab does not lead to ${selector} ${name ?? ''}`);
        await keyboard.press('Tab');
      }
    },
    activate: async (selector, name, key = 'Enter') => {
      await keys.to(selector, name);
      keys.opener = await page.evaluateHandle(() => document.activeElement);
      await keyboard.press(key);
    },
    /** The focus is somewhere, and seen. */
    isSeen: async (state) => {
      await page.waitForFunction(() => document.activeElement !== document.body, undefined, { timeout: 3000 }).catch(() => {});
      const { name, isBody, ...facts } = await page.evaluate(focused);
      assert.deepEqual({ isBody, ...facts }, { isBody: false, isSeen: true, isMarked: true }, `${state}: the focus, at ${name}`);
    },
    /** The focus has come back to what was activated last, or to this element. */
    isBack: async (state, selector) => {
      const isThere = page.waitForFunction(([node, other]) => (other ? document.activeElement.matches(other) : document.activeElement === node), [keys.opener, selector], { timeout: 3000 });
      const at = () => page.evaluate(() => document.activeElement.outerHTML.slice(0, 120));
      await isThere.catch(async () => assert.fail(`${state}: the focus did not come back, but is at ${await at()}`));
    },
  };
  return keys;
}
