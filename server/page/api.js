// The HTTP calls of the page.
import { ask, headers } from './token.js';

/** An answer that is not a success. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** By how many milliseconds the server's clock is ahead of ours; 0 as long as they agree within two seconds. */
export let clockAhead = 0;

/** The JSON behind a path. Asks for the token when the server wants one. `change`: what is to be changed there. */
async function get(path, change) {
  const sent = headers();
  const patch = { method: 'PATCH', headers: { ...sent, 'content-type': 'application/json' }, body: JSON.stringify(change) };
  const response = await fetch(new URL(path, document.baseURI), change ? patch : { headers: sent });
  noteClock(response);
  if (response.status === 401) {
    await ask(sent.authorization);
    return get(path, change);
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, body.error ?? `The server answered ${response.status}.`);
  return body;
}

function noteClock(response) {
  const date = Date.parse(response.headers.get('date'));
  if (Number.isNaN(date)) return;
  const ahead = date + 500 - Date.now(); // the header has whole seconds
  clockAhead = Math.abs(ahead) > 2000 ? ahead : 0;
}

/** Whether the server could have a conversation of this id. */
export const isConversationId = (id) => /^[\w.:-]{1,128}$/.test(id) && !/^\.{1,2}$/.test(id);

const conversation = (id) => `conversations/${encodeURIComponent(id)}`;

/** The newest failed attempts of a turn, oldest first. */
export async function getAttempts(id, turnId) {
  const { attempts } = await get(`${conversation(id)}/attempts?turnId=${encodeURIComponent(turnId)}`);
  return attempts;
}

export const getModels = () => get('models');
export const getTargets = () => get('targets');
export const getConversations = () => get('conversations');
export const getStatus = (id) => get(`${conversation(id)}/status`);

const retry = (id) => (id === undefined ? 'retry' : `${conversation(id)}/retry`);

/** The retry settings of a conversation; without an id the global ones. */
export const getRetrySettings = (id) => get(retry(id));
/** Changes some of them; null resets one. */
export const setRetrySettings = (id, change) => get(retry(id), change);

/** The newest `limit` chunks, of those before `beforeSeq` when it is given. */
export function getHistory(id, limit, beforeSeq) {
  const before = beforeSeq === undefined ? '' : `&beforeSeq=${beforeSeq}`;
  return get(`${conversation(id)}?limit=${limit}${before}`);
}
