// The page of one server, while another server of its cluster drives a turn.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startServer } from './support/binary.mjs';
import { launch, openPage, send } from './support/browser.mjs';
import { program, startNats } from './support/nats.mjs';
import { picture } from './support/picture.mjs';
import { startProvider } from './support/provider.mjs';

const options = program ? {} : { skip: 'EVERTURN_NATS_SERVER names no NATS server' };
const ends = [];
let a;
let b;
let provider;

const config = (url) => `
[[provider]]
name = "sim"
base_url = "${url}"
models = ["one"]
`;

before(async () => {
  if (!program) return;
  const directory = await mkdtemp(join(tmpdir(), 'everturn-'));
  ends.push(() => rm(directory, { recursive: true, force: true }));
  const browser = await launch();
  ends.push(() => browser.close());
  provider = await startProvider();
  ends.push(() => provider.stop());
  const nats = await startNats(directory);
  ends.push(nats.stop);
  const file = join(directory, 'config.toml');
  await writeFile(file, config(provider.url));
  const pages = [];
  for (let n = 0; n < 2; n += 1) {
    const server = await startServer(['--config', file], {}, { cluster: nats.url });
    ends.push(server.stop);
    pages.push(await openPage(browser, server.url));
  }
  [a, b] = pages;
});
after(async () => {
  for (const end of ends.reverse()) await end();
});

/** Waits until the list of a page has one row that looks like this. */
async function lists(page, { title, state, aside }) {
  await page.waitForFunction(
    (wanted) => {
      const rows = [...document.querySelectorAll('#list li:not(.none)')];
      const [row] = rows;
      return (
        rows.length === 1 &&
        row.querySelector('.name').textContent === wanted.title &&
        row.querySelector('.dot').classList.contains(wanted.state) &&
        new RegExp(wanted.aside).test(row.querySelector('time').textContent)
      );
    },
    { title, state, aside: aside.source },
  );
}

test('the list of a page shows what another server does, without a reload', options, async () => {
  await b.locator('#list .none').waitFor();
  provider.says({ status: 429, headers: { 'retry-after': '45' }, body: { error: { message: 'Slow down' } } });
  provider.says('There you are.');
  await send(a, 'What now?');
  await lists(b, { title: 'What now?', state: 'waiting', aside: /^[34]\d s$/ });
  await picture(b, 'cluster-waiting');
  const row = b.locator('#list li');
  const left = Number.parseInt(await row.locator('time').textContent(), 10);
  await b.waitForFunction((most) => Number.parseInt(document.querySelector('#list time').textContent, 10) < most, left);

  await a.locator('#retry-now').click();
  await lists(b, { title: 'What now?', state: 'idle', aside: /./ });
  await picture(b, 'cluster-ended');

  // Renamed and deleted at the one, seen at the other.
  await row.click();
  await b.locator('.answer', { hasText: 'There you are.' }).waitFor();
  const id = new URL(b.url()).hash.slice(4);
  const patch = { method: 'PATCH', headers: { 'content-type': 'application/json' }, body: '{"title":"Renamed"}' };
  const changed = await b.evaluate(([path, init]) => fetch(path, init).then((r) => r.status), [`/conversations/${id}`, patch]);
  assert.equal(changed, 200);
  await lists(a, { title: 'Renamed', state: 'idle', aside: /./ });
  await b.evaluate((path) => fetch(path, { method: 'DELETE' }), `/conversations/${id}`);
  await a.locator('#list .none').waitFor();
  assert.deepEqual([...a.wrongs, ...b.wrongs].filter((wrong) => !/404/.test(wrong)), []);
});
