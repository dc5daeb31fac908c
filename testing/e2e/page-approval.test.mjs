// Tool calls that wait for a person, answered on the page, with the real server and a provider on loopback.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { openPage, send } from './support/browser.mjs';
import { served } from './support/served.mjs';

const config = (url) => `
[tools]
dice = true

[tools.policy]
roll_dice = "ask"

[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]
`;

const stage = served(config, 1, { isKept: true });
const { settled, shows, crash } = stage;
let browser;
let provider;
let server;
let page;
beforeEach(() => ({ browser, provider, server, page } = stage));

const roll = (...inputs) => ({ calls: inputs.map((input) => ({ name: 'roll_dice', input })) });
const cards = (on = page) => on.locator('.approval');
const lines = (on = page) => on.locator('.permission > p').allTextContents();
const button = (name, on = page) => on.getByRole('button', { name });
const until = (condition, argument, on = page) => on.waitForFunction(condition, argument);
/** The tool results in the last request to the model. */
const told = () => provider.requests.at(-1).said;

/** Asks for dice, and waits for this many cards. */
async function ask(text, ...inputs) {
  provider.says(roll(...inputs));
  await send(page, text);
  await cards().nth(inputs.length - 1).waitFor();
}

/** Ends the turn with this answer, and checks that nothing is left to answer. */
async function ends(answer, on = page) {
  await shows(answer, on);
  await settled(on);
  assert.equal(await cards(on).count(), 0);
  await until(() => document.querySelector('#list .dot')?.classList.contains('idle'), null, on);
}

/** Checks that these lines are shown, also after a reload. */
async function tells(...wanted) {
  assert.deepEqual(await lines(), wanted);
  await page.reload();
  await page.locator('.history .permission').first().waitFor();
  assert.deepEqual(await lines(), wanted, 'after a reload');
}

test('a call shows what is to run, runs when it is allowed, and takes no focus', async () => {
  await ask('Two dice', { sides: 20, count: 2 });
  await until(() => document.querySelector('#list time')?.textContent === 'Needs you');
  await until(() => document.title === 'Needs you · Two dice · Everturn');
  const card = cards();
  assert.equal(await card.getAttribute('aria-label'), 'roll_dice needs your approval');
  assert.equal(await page.locator('#announcer').textContent(), 'roll_dice needs your approval');
  assert.equal(await card.locator('.arguments').innerText(), 'sides\n20\ncount\n2');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'send');
  provider.says('There they are.');
  await button('Allow once').click();
  await ends('There they are.');
  await tells('Allowed (page)');
  assert.match(told().at(-1), /^\d+, \d+$/);
  assert.equal(await page.title(), 'Two dice · Everturn');
  assert.ok(await page.locator('#allowed-button').isHidden(), 'nothing was allowed for the conversation');
  assert.deepEqual(page.wrongs, []);
});

test('a call is denied by keyboard, and its reason reaches the model', async () => {
  await ask('Dice', {});
  assert.equal(await cards().locator('.none').textContent(), 'No arguments');
  provider.says('As you wish.');
  await page.getByRole('textbox', { name: 'Reason for a denial' }).fill('not on a Sunday');
  await page.keyboard.press('Enter');
  await ends('As you wish.');
  assert.match(told().at(-1), /not on a Sunday/);
  assert.equal(await page.locator('.tool .state').textContent(), 'failed');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'prompt');
  await tells('Denied (page): not on a Sunday');
  assert.deepEqual(page.wrongs, []);
});

test('a tool allowed for the conversation needs no approval until that is revoked', async () => {
  await ask('Dice', { sides: 4 }, { sides: 6 });
  provider.says(roll({ sides: 8 }), 'Rolled.');
  await button('Allow roll_dice in this conversation').first().click();
  await ends('Rolled.');
  assert.equal(await page.locator('.tool').count(), 3, 'the next step asked nobody');
  await tells(
    'Allowed for this conversation (page)',
    'Allowed for this conversation (page)',
    'Allowed earlier for this conversation',
  );
  provider.says(roll({}), 'Again.');
  await send(page, 'More dice');
  await ends('Again.');
  await page.reload();
  await page.locator('#allowed-button').click();
  assert.deepEqual(await page.locator('#allowed-list .name').allTextContents(), ['roll_dice']);
  await button('Revoke roll_dice').click();
  await page.locator('#allowed').waitFor({ state: 'hidden' });
  assert.ok(await page.locator('#allowed-button').isHidden());
  await ask('And more', {});
  provider.says('Enough.');
  await button('Deny').click();
  await ends('Enough.');
  assert.deepEqual(page.wrongs, []);
});

test('the allowed tools are shown after a reload although the first requests for them fail', async () => {
  await ask('Dice', {});
  provider.says('Rolled.');
  await button('Allow roll_dice in this conversation').click();
  await ends('Rolled.');
  let lost = 0;
  await page.route('**/approvals', (route) => {
    lost += 1;
    if (lost > 4) return route.continue();
    return lost % 2 === 1 ? route.abort() : route.fulfill({ contentType: 'application/json', body: '{"allowedTools":["roll_' });
  });
  await page.reload();
  await page.locator('#allowed-button').click();
  assert.deepEqual(await page.locator('#allowed-list .name').allTextContents(), ['roll_dice']);
});

test('each of several calls has its answer', async () => {
  await ask('Dice', { sides: 4 }, { sides: 6 }, { sides: 8 });
  await button('Allow once').nth(1).click();
  await until(() => document.querySelectorAll('.approval').length === 2);
  await button('Deny').nth(1).click();
  await until(() => document.querySelectorAll('.approval').length === 1);
  provider.says('Mixed.');
  await button('Allow once').click();
  await ends('Mixed.');
  assert.deepEqual(await lines(), ['Allowed (page)', 'Allowed (page)', 'Denied (page)']);
  assert.equal(told().filter((said) => /denied/.test(said)).length, 1);
});

test('other viewers see the card and the answer', async () => {
  await ask('Dice', {});
  const other = await openPage(browser, page.url());
  await cards(other).waitFor();
  provider.says('Seen by both.');
  await button('Allow once', other).click();
  for (const each of [page, other]) await ends('Seen by both.', each);
  assert.deepEqual([await lines(), await lines(other)], [['Allowed (page)'], ['Allowed (page)']]);
  assert.deepEqual([page.wrongs, other.wrongs], [[], []]);
  await other.context().close();
});

test('the name of the person who answered elsewhere is shown', async () => {
  await ask('Dice', {});
  provider.says('By Ada.');
  const id = decodeURIComponent(new URL(page.url()).hash.split('/').at(-1));
  const url = `${server.url}/conversations/${id}/approvals`;
  const [{ turnId, stepId, toolCallId }] = (await (await fetch(url)).json()).pending;
  const body = { turnId, stepId, toolCallId, verdict: 'allowed', name: 'Ada\u202e' };
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.deepEqual((await answer.json()).answered, true);
  await ends('By Ada.');
  await tells('Allowed by Ada<U+202E> (HTTP)');
  assert.deepEqual(page.wrongs, []);
});

test('a card is shown again after a reload', async () => {
  await ask('Dice', { sides: 12 });
  await page.reload();
  await cards().waitFor();
  assert.equal(await cards().locator('.arguments').innerText(), 'sides\n12');
  provider.says('Still here.');
  await button('Allow once').click();
  await ends('Still here.');
  assert.deepEqual(page.wrongs, []);
});

test('a conversation that needs somebody is marked in the list and in other titles', async () => {
  await ask('Dice', {});
  await page.locator('#new').click();
  await until(() => document.title === '(1) Everturn');
  const row = page.locator('#list li', { hasText: 'Dice' });
  assert.equal(await row.locator('time').textContent(), 'Needs you');
  assert.equal(await row.locator('.dot').getAttribute('aria-label'), 'needs you');
  await row.locator('a').click();
  await cards().waitFor();
  provider.says('Found it.');
  await button('Deny').click();
  await ends('Found it.');
  assert.equal(await page.title(), 'Dice · Everturn');
});

test('so is a conversation that is not open', async () => {
  let release;
  provider.says(new Promise((resolve) => (release = () => resolve(roll({})))));
  await send(page, 'Dice');
  await page.locator('.turn[aria-busy=true]').waitFor();
  await page.locator('#new').click();
  await until(() => document.title === 'Everturn');
  release();
  await until(() => document.title === '(1) Everturn');
  await until(() => document.querySelector('#list .needs-you time')?.textContent === 'Needs you');
});

test('a card survives kill -9, and its answer counts', async () => {
  await ask('Dice', { sides: 3 }, { sides: 5 });
  await button('Allow once').first().click();
  await until(() => document.querySelector('.tool .state').textContent.startsWith('done'));
  await crash();
  await cards().waitFor();
  assert.equal(await cards().locator('.arguments').innerText(), 'sides\n5');
  assert.equal(await cards().count(), 1);
  provider.says('Alive.');
  await button('Allow once').click();
  await ends('Alive.');
  assert.match(told().at(-1), /^\d+$/);
  assert.match(told().at(-2), /^\d+$/);
});

test('an answer that cannot be sent, or comes too late, leaves no button stuck', async () => {
  await ask('Dice', {});
  const problem = page.locator('.approval-problem');
  await page.route('**/approvals', (route) => route.abort(), { times: 1 });
  await button('Allow once').click();
  await problem.filter({ hasText: 'Not sent: the server cannot be reached. Try again.' }).waitFor();
  await page.route('**/approvals', (route) => route.fulfill({ json: { answered: false } }), { times: 1 });
  await button('Allow once').click();
  await problem.filter({ hasText: 'Too late: the call is no longer waiting for an answer.' }).waitFor();
  provider.says('At last.');
  await button('Allow once').click();
  await ends('At last.');
  assert.deepEqual(await lines(), ['Allowed (page)']);
});

test('a turn that is stopped while it waits has nothing left to answer', async () => {
  await ask('Dice', {});
  await page.locator('#stop').click();
  await settled();
  assert.equal(await cards().count(), 0);
  assert.match((await lines()).join(), /^(Not answered: the turn ended)?$/);
  await until(() => document.querySelector('#list .dot')?.classList.contains('idle'));
});
