// The list of calls that pass through.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stage } from './support/stage.mjs';

const on = stage();

const call = (more) => ({ id: 'call-1', program: 'claude-cli/2.1', session: 's-1', model: 'sonnet', target: 'anthropic/sonnet', phase: 'asking', startedAt: 1, retries: 0, waitedMs: 0, listeners: 1, ...more });

test('calls of other programs are listed with what they wait for, and can be hurried and ended', async () => {
  const nextAt = Date.now() + 3_600_000;
  on.server.calls = [
    call({ phase: 'waiting', nextAt, retries: 4, category: 'overloaded', because: 'HTTP 529: Overloaded' }),
    call({ id: 'call-2', program: undefined, phase: 'answering' }),
    call({ id: 'call-3', listeners: 0 }),
    call({ id: 'call-4', listeners: 0, phase: 'kept' }),
    call({ id: 'call-5', phase: 'waiting', nextAt, category: 'rate_limited', shared: true }),
  ];
  await on.open();
  await on.page.locator('#call-list li').nth(4).waitFor();
  const rows = await on.page.locator('#call-list li').allInnerTexts();
  assert.match(rows[0], /^claude-cli\/2\.1 · sonnet\nanthropic\/sonnet is overloaded, asking again in .*, retry 4\n/);
  assert.equal(rows[1], 'sonnet\nanswer from anthropic/sonnet');
  assert.equal(rows[2], 'claude-cli/2.1 · sonnet\nasking anthropic/sonnet; its program is gone');
  assert.equal(rows[3], 'claude-cli/2.1 · sonnet\nanswered; nobody has taken the answer yet');
  assert.match(rows[4], /^claude-cli\/2\.1 · sonnet\nanthropic\/sonnet is rate limited, asking again within .*\n/);
  assert.equal(await on.page.locator('#call-list .state').first().getAttribute('title'), 'HTTP 529: Overloaded');
  await on.page.getByRole('button', { name: 'Retry now' }).first().click();
  await on.page.getByRole('button', { name: 'Give up' }).first().click();
  on.server.calls = [];
  await on.until(() => document.querySelector('#calls').hidden);
  assert.deepEqual(on.server.ordered, ['/calls/call-1/retry-now', '/calls/call-1/give-up']);
  assert.deepEqual(on.page.wrongs, []);
});
