// A page whose server is killed during a wait.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { startServer } from './binary.mjs';
import { shown, until } from './chat.mjs';
import { LIMITED } from './token-server.mjs';

let files = 0;

/** Kills a server while its turn waits, starts it again, and expects that the chat finds its turn. `open` opens a chat. */
export async function outlives({ provider, file, folder }, open) {
  const data = join(folder, `outlives-${(files += 1)}.db`);
  const first = await startServer(['--config', file], {}, { data });
  const listen = new URL(first.url).host;
  const { chat, told, errors } = open(first.url);
  provider.says({ ...LIMITED, headers: { 'retry-after': '10' } }, 'Survived.');
  const asking = chat.sendMessage({ text: 'hi' });
  // A wait that is shown is stored. Killed earlier, the turn would be asked again at once and end before the page is back.
  await until(() => told.some(({ type }) => type === 'data-everturn-retry'));
  await first.stop('SIGKILL');
  await asking;
  assert.deepEqual([chat.status, errors.length], ['error', 1]);
  const second = await startServer(['--config', file], {}, { data, listen });
  try {
    await chat.resumeStream();
    assert.deepEqual(shown(chat), ['user: hi', 'assistant: Survived.']);
  } finally {
    await second.stop();
  }
}
