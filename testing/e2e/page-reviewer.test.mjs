// A tool call reviewed by a model, with the real server, and the model and its reviewer on loopback.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { send } from './support/browser.mjs';
import { startProvider } from './support/provider.mjs';
import { served } from './support/served.mjs';

let reviewer;
before(async () => {
  reviewer = await startProvider();
});

const config = (url) => `
[tools]
dice = true

[tools.policy]
roll_dice = "review"

[tools.review]
model = "judge/strict"

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]

[[provider]]
name = "judge"
base_url = "${reviewer.url}"
models = ["strict"]
`;

const stage = served(config, 2, { isKept: true });
const { settled, shows } = stage;
let provider;
let page;
beforeEach(() => {
  ({ provider, page } = stage);
  reviewer.requests.length = 0;
});
after(() => reviewer.stop());

const roll = { calls: [{ name: 'roll_dice', input: { sides: 20 } }] };
const verdict = (more) => JSON.stringify(more);
const lines = () => page.locator('.permission > p').allTextContents();

/** Asks for dice. The reviewer answers like this; then the model answers. */
async function ask(answer, ...verdicts) {
  reviewer.says(...verdicts);
  provider.says(roll, answer);
  await send(page, 'Roll a die with 20 sides');
}

/** Waits for the end of the turn, and checks that these lines are shown, also after a reload. */
async function tells(...wanted) {
  await settled();
  assert.deepEqual(await lines(), wanted);
  await page.reload();
  await page.locator('.history .permission').first().waitFor();
  assert.deepEqual(await lines(), wanted, 'after a reload');
  assert.deepEqual(page.wrongs, []);
}

test('a call that the reviewer allows runs, without asking anyone', async () => {
  await ask('Rolled.', verdict({ outcome: 'allow', risk_level: 'low', rationale: 'Dice harm nobody.' }));
  await shows('Rolled.');
  assert.match(provider.requests.at(-1).said.at(-1), /^\d+$/);
  assert.equal(reviewer.requests.length, 1);
  assert.match(JSON.stringify(reviewer.requests[0].said), /Roll a die with 20 sides/, 'it is told what was asked');
  await tells('Allowed by review (low risk): Dice harm nobody.');
});

test('a call that the reviewer denies does not run, and the model is told why', async () => {
  await ask('As you wish.', verdict({ outcome: 'deny', risk_level: 'high', rationale: 'Nobody asked for dice.' }));
  await shows('As you wish.');
  assert.match(provider.requests.at(-1).said.at(-1), /Nobody asked for dice/);
  assert.equal(await page.locator('.tool .state').textContent(), 'failed');
  await tells('Denied by review (high risk): Nobody asked for dice.');
});

test('if the reviewer fails, the person is asked', async () => {
  const refused = { status: 403, body: { error: { message: 'not for you' } } };
  await ask('Rolled after all.', refused);
  const card = page.locator('.approval');
  await card.waitFor();
  assert.match(await card.locator('.approval-why').textContent(), /the automatic review came to no decision/);
  assert.equal(reviewer.requests.length, 1, 'a refusal is not retried');
  await page.getByRole('button', { name: 'Allow once' }).click();
  await shows('Rolled after all.');
  await tells('Review failed', 'Allowed (page)');
});

test('an answer that is not an assessment is requested again', async () => {
  await ask('Rolled.', 'I think that is fine.', verdict({ outcome: 'allow' }));
  await shows('Rolled.');
  assert.equal(reviewer.requests.length, 2);
  await tells('Allowed by review');
});
