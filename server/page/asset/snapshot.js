// Fetches a conversation as stored on the server.
import { getHistory, getStatus } from './api.js';

/** Maximum number of chunks fetched at once. */
export const WINDOW = 200;

const MOST_TRIES = 5;

/**
 * The status, and the newest chunks before the running turn, both from a time at which no turn began.
 *
 * `begun()` returns how many turns have begun since we subscribed. A turn that began while we fetched may or may not be
 * in the responses, so they are fetched again. The running turn itself is not fetched, because its replay arrives
 * meanwhile.
 */
export async function getSnapshot(id, begun) {
  for (let tries = 1; ; tries += 1) {
    const before = begun();
    const status = await getStatus(id);
    const window = await getHistory(id, WINDOW, status.turnSeq);
    const isRunning = status.turnSeq !== undefined;
    if (begun() - before <= (isRunning ? 1 : 0) || tries === MOST_TRIES) return { status, isRunning, window };
  }
}
