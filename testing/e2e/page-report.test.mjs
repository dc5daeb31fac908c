// Turns that must end with a report, on the page, with the real server and a provider on loopback.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { send } from './support/browser.mjs';
import { served } from './support/served.mjs';

const config = (url) => `
[retry]
schedule = "exponential"
base_ms = 1
max_retries = 1

[agent]
final_report = { type = "object", required = ["status"], properties = { status = { type = "string" } } }

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]
`;

const stage = served(config, 1, { isKept: true });
const { settled, shows } = stage;
let provider;
let page;
beforeEach(() => ({ provider, page } = stage));

const reports = (input) => ({ calls: [{ name: 'final_report', input }] });
const notes = () => page.locator('.turn > .note').allTextContents();
const MISSING = 'No report yet: the reply has neither a tool call nor a final report: call a tool, or final_report when you are done';

/** Everything shown, in order: messages, notes, cards and answers. */
const shown = () =>
  page.$$eval('.turn > .user .bubble, .turn > .note, .turn > .report, .turn .answer', (parts) =>
    parts.map((part) => `${part.className}: ${part.textContent}`).filter((part) => !part.includes('Asking only for')),
  );

/** Checks that it is the same after a reload. */
async function staysAfterReload() {
  const before = await shown();
  await page.reload();
  await page.locator('.history .report').first().waitFor();
  assert.deepEqual(await shown(), before, 'after a reload');
}

test('a report is a card, and failed replies are lines', async () => {
  const report = { status: 'done', findings: ['one', 'two'], notes: 'First.\nSecond.' };
  provider.says('I think that is all.', reports({ status: 7 }), reports(report));
  await send(page, 'Check it');
  await page.locator('.report').waitFor();
  await settled(page);
  const card = page.locator('.report');
  assert.equal(await card.locator('summary').textContent(), 'Final report');
  assert.deepEqual((await card.innerText()).split(/\s*\n\s*/), ['Final report', 'status', 'done', 'findings', '1', 'one', '2', 'two', 'notes', 'First.', 'Second.']);
  assert.ok(await card.evaluate(({ open }) => open), 'a short one is open');
  assert.deepEqual(await notes(), [MISSING], 'the step goes on');
  assert.equal(await page.locator('.tool.failed').count(), 1, 'the rejected one');
  assert.equal(await page.locator('.bubble').count(), 1, 'only the person has a bubble');
  assert.equal(provider.requests.length, 3);
  assert.match(JSON.stringify(provider.requests[1].said), /TURN-FAILED: the reply has neither/);
  if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT });
  await staysAfterReload();
  assert.deepEqual(page.wrongs, []);
});

test('a long report is collapsed', async () => {
  provider.says(reports({ status: 'done', lines: Array.from({ length: 40 }, (_, at) => `line ${at}`) }));
  await send(page, 'List them');
  await page.locator('.report').waitFor();
  const isOpen = () => page.locator('.report').evaluate(({ open }) => open);
  assert.equal(await isOpen(), false);
  await page.locator('.report > summary').click();
  assert.ok(await page.locator('.report dd', { hasText: 'line 39' }).last().isVisible());
  await settled(page);
  await staysAfterReload();
  assert.equal(await isOpen(), false);
});

test('a missing report shows the reason', async () => {
  provider.says('Done.', 'Really done.', 'Believe me.', 'No.', 'Really.', 'Never.');
  await send(page, 'Check it');
  await page.locator('.report.failed').waitFor();
  await settled(page);
  const [title, context] = await page.locator('.report.failed p').allTextContents();
  assert.match(title, /^No report: the model gave no acceptable final report in 6 attempts: the reply has neither/);
  assert.match(context, /^6 steps, 0 retries, 6 replies without an acceptable report$/);
  const forced = 'Asking only for the report: no retries are left.';
  assert.deepEqual(await notes(), [MISSING, MISSING, MISSING, forced, MISSING, MISSING]);
  await staysAfterReload();
  assert.deepEqual(page.wrongs, []);
});

test('when no retries are left, only the report is requested', async () => {
  provider.says(null, null, reports({ status: 'overloaded' }));
  await send(page, 'Check it');
  await page.locator('.report dd', { hasText: /^overloaded$/ }).waitFor();
  await settled(page);
  assert.deepEqual(await notes(), ['Asking only for the report: no retries are left.']);
  assert.deepEqual(page.wrongs, []);
});
