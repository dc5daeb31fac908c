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

/** How long a call that changes something may take. */
const PATIENCE_MS = 15_000;

const get = (path) => call('GET', path);

/** The JSON that a call answers. Asks for the token when the server wants one. `body`: what is sent with it. */
async function call(method, path, body) {
  const sent = headers();
  const type = body && { 'content-type': 'application/json' };
  // What was pressed must not stay so for ever.
  const signal = method === 'GET' ? undefined : AbortSignal.timeout(PATIENCE_MS);
  const request = { method, headers: { ...sent, ...type }, body: body && JSON.stringify(body), signal };
  const response = await fetch(new URL(path, document.baseURI), request);
  noteClock(response);
  if (response.status === 401) {
    await ask(sent.authorization);
    return call(method, path, body);
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, answer.error ?? `The server answered ${response.status}.`);
  return answer;
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

/** The figures of a sealed turn. */
export const getTurn = (id, turnId) => get(`${conversation(id)}/turns/${encodeURIComponent(turnId)}`);

export const getModels = () => get('models');
export const getTargets = () => get('targets');
/** What models are offered, and the servers that it comes from. */
export const getTools = () => get('tools');
export const getConversations = () => get('conversations');
export const getStatus = (id) => get(`${conversation(id)}/status`);

const retry = (id) => (id === undefined ? 'retry' : `${conversation(id)}/retry`);

/** The retry settings of a conversation; without an id the global ones. */
export const getRetrySettings = (id) => get(retry(id));
/** Changes some of them; null resets one. */
export const setRetrySettings = (id, change) => call('PATCH', retry(id), change);

export const renameConversation = (id, title) => call('PATCH', conversation(id), { title });
export const deleteConversation = (id) => call('DELETE', conversation(id));

/** The oldest chunks after that one; `more` where there are others behind them. */
export const getChunksAfter = (id, seq) => get(`${conversation(id)}?sinceSeq=${seq}`);

/** The newest `limit` chunks, of those before `beforeSeq` when it is given. */
export function getHistory(id, limit, beforeSeq) {
  const before = beforeSeq === undefined ? '' : `&beforeSeq=${beforeSeq}`;
  return get(`${conversation(id)}?limit=${limit}${before}`);
}

/** The calls that wait for a person, and the tools that were allowed for the whole conversation. */
export const getApprovals = (id) => get(`${conversation(id)}/approvals`);
/** Answers a request for approval. */
export const answerApproval = (id, answer) => call('POST', `${conversation(id)}/approvals`, answer);
/** Asks again before each call of a tool that was allowed for the whole conversation. */
export function revokeTool(id, tool) {
  return call('DELETE', `${conversation(id)}/approvals/tools/${encodeURIComponent(tool)}`);
}
