// Accessibility beside the checker (support/states.mjs): names for screen readers, shortcuts, drafts, and touch target sizes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stage } from './support/stage.mjs';

const on = stage();
const PHONE = { viewport: { width: 380, height: 760 }, isMobile: true, hasTouch: true };
const SAID =
  '# Title\n\nSome `code` and a [link](https://example.org), ~~gone~~.\n\n- [x] done\n- [ ] to do\n\n> said\n\n' +
  '| a | b |\n|---|--:|\n| 1 | 2 |\n\n```rust\n// It adds.\nfn add(a: u32) -> Option<&str> { let b = 42; Some("b") }\n```\n\n' +
  '```html\n<p class="x">text</p>\n```\n\n```diff\n- old\n+ new\n```\n';

test('touch targets are large enough', async () => {
  await on.open('/', PHONE);
  const small = () =>
    on.page.evaluate(() =>
      [...document.querySelectorAll('button, select, summary, input, #list a, textarea')]
        .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled && !each.closest('[inert]'))
        .map((each) => ({ name: each.id || each.className || each.nodeName, box: (each.closest('label') ?? each).getBoundingClientRect() }))
        .filter(({ box: { width, height } }) => Math.round(width) < 44 || Math.round(height) < 44) // they are fractions
        .map(({ name, box }) => `${name}: ${box.width} x ${box.height}`),
    );
  assert.deepEqual(await small(), []);
  const turn = await on.begin('Explain');
  turn.tell({ type: 'provider-retry', attempt: 0, delayMs: 600_000, message: '{"error":{"message":"Busy"}}', code: '429' });
  await on.until(() => !document.querySelector('#banner').hidden);
  assert.deepEqual(await small(), []);
  turn.tell({ type: 'reasoning-delta', delta: 'Let me think.' });
  turn.say(SAID);
  turn.end();
  await on.sealed();
  assert.deepEqual(await small(), []);
  await on.page.locator('#menu').tap();
  await on.page.locator('#list a').waitFor();
  assert.deepEqual(await small(), []);
  await on.page.locator('#list .more').tap();
  assert.deepEqual(await small(), []);
});

test('roles and names identify who says what', async () => {
  await on.open();
  const turn = await on.begin('A question');
  turn.say('An answer');
  turn.end();
  await on.sealed();
  const names = () => on.page.getByRole('article').evaluateAll((nodes) => nodes.map((node) => `${node.ariaLabel}: ${node.querySelector('.bubble, .answer').textContent.trim()}`));
  assert.deepEqual(await names(), ['You: A question', 'Answer: An answer']);
  await on.page.reload();
  await on.page.locator('.history .answer').waitFor();
  assert.deepEqual(await names(), ['You: A question', 'Answer: An answer']);
});

test('everything can be done by keyboard', async () => {
  const first = on.server.conversation();
  first.begin('First').end();
  const second = on.server.conversation();
  second.begin('Second').end();
  second.at += 1000;
  await on.open(`/#/c/${second.id}`);
  await on.shows('Second');
  const { keyboard } = on.page;
  const isFocused = (id) => on.until((wanted) => document.activeElement.id === wanted, id);
  await keyboard.press('Control+k');
  await isFocused('search');
  await keyboard.press('Alt+ArrowDown');
  await on.shows('First');
  await keyboard.press('Alt+ArrowDown');
  await keyboard.press('Alt+ArrowUp');
  await on.shows('Second');
  await on.page.locator('#scroll').focus();
  await keyboard.press('?');
  await on.page.locator('#shortcuts[open]').waitFor();
  assert.match(await on.page.locator('#shortcuts dl').innerText(), /New conversation/);
  await keyboard.press('Escape');
  await on.page.locator('#shortcuts[open]').waitFor({ state: 'detached' }).catch(() => {});
  await on.page.locator('#scroll').focus();
  await keyboard.press('/');
  await isFocused('prompt');
  await keyboard.type('a / b ? c');
  assert.equal(await on.page.locator('#prompt').inputValue(), 'a / b ? c', 'they are letters where one writes');
  await keyboard.press('Control+Shift+O');
  await on.page.locator('#welcome').waitFor();
  await isFocused('prompt');
  assert.equal(on.commands('chat.stop').length, 0);
});

test('a draft stays with its conversation, and survives a reload', async () => {
  const other = on.server.conversation();
  other.begin('Beta').end();
  await on.open();
  const field = on.page.locator('#prompt');
  const turn = await on.begin('Alpha');
  turn.end();
  await on.sealed();
  await field.fill('for here');
  await on.page.locator('#list a', { hasText: 'Beta' }).click();
  await on.until(() => document.querySelector('.bubble')?.textContent === 'Beta');
  assert.equal(await field.inputValue(), '');
  await field.fill('for elsewhere');
  await on.page.locator('#list a', { hasText: 'Alpha' }).click();
  await on.until(() => document.querySelector('#prompt').value === 'for here');
  await on.page.reload();
  await on.until(() => document.querySelector('#prompt').value === 'for here');
  await on.page.locator('#send').click();
  await on.until(() => document.querySelector('#prompt').value === '');
  await on.page.locator('#list a', { hasText: 'Beta' }).click();
  await on.until(() => document.querySelector('#prompt').value === 'for elsewhere');
  await on.page.locator('#list a', { hasText: 'Alpha' }).click();
  await on.until(() => document.querySelector('.bubble')?.textContent === 'Alpha');
  assert.equal(await field.inputValue(), '', 'what was sent is no draft');
});

test('messages are copied as they were written', async () => {
  await on.open('/', { permissions: ['clipboard-read', 'clipboard-write'] });
  const turn = await on.begin('Is it **so**?');
  turn.tell({ type: 'turn-start', messageSeq: 1 });
  turn.say('It *is*');
  turn.tell({ type: 'step-complete', stepId: `${turn.id}#0` });
  turn.say('- so\n- `it` is\n');
  turn.end();
  await on.sealed();
  const copies = async (place) => {
    await on.page.locator(place).locator('button', { hasText: 'Copy' }).click();
    await on.page.locator(place).locator('button', { hasText: 'Copied' }).waitFor();
    return on.page.evaluate(() => navigator.clipboard.readText());
  };
  for (const round of ['live', 'from history']) {
    assert.equal(await copies('.offers'), 'It *is*\n\n- so\n- `it` is', round);
    assert.equal(await copies('.beside'), 'Is it **so**?', round);
    await on.page.reload();
    await on.page.locator('.history .answer').last().waitFor();
  }
});

test('on a phone, the placeholder fits on one line, and a long message has the width', async () => {
  await on.open('/', { viewport: { width: 390, height: 760 } });
  /** The width of the placeholder, and that of the line that it is in. */
  const placeholder = () =>
    on.page.locator('#prompt').evaluate((field) => {
      const { font, paddingLeft, paddingRight } = getComputedStyle(field);
      const pen = Object.assign(document.createElement('canvas').getContext('2d'), { font });
      return [pen.measureText(field.placeholder).width, field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)];
    });
  const turn = await on.begin('It was a dark and stormy night; the rain fell in torrents, except at occasional intervals.');
  const [wide, room] = await placeholder();
  assert.ok(wide < room, `${wide} of ${room} px`);
  turn.tell({ type: 'turn-start', messageSeq: 1 });
  turn.say('A short answer.');
  turn.end();
  await on.page.locator('.edit').waitFor();
  const [bubble, edit, column] = await Promise.all(['.bubble', '.edit', '.turn'].map((part) => on.page.locator(part).boundingBox()));
  assert.ok(bubble.width > 0.9 * column.width, `${bubble.width} of ${column.width} px`);
  assert.ok(edit.y >= bubble.y + bubble.height && edit.x >= column.x, 'its buttons are below');
  assert.equal(await on.page.locator('#latest').isHidden(), true, 'the end is shown, buttons included');
});
