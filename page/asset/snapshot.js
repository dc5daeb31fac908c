// A conversation as the server has stored it.
import { getHistory, getStatus } from './api.js';

/** The most chunks that are fetched at once. */
export const WINDOW = 200;

const MOST_TRIES = 5;

/**
 * The status, and the newest chunks before the running turn: both of a time at which no turn began.
 *
 * `begun()` tells how many turns have begun since we listen. One that began while we asked may or may not be in the
 * answers, so they are asked for again; but not the running turn itself, whose replay reaches us meanwhile.
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
