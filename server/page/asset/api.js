// The page's HTTP calls.
import { ask, headers } from './token.js';

/** A response that is not a success. */
export class ApiError extends Error {
  /** `body`: the whole answer, if it is JSON. */
  constructor(status, message, body) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

/** Milliseconds by which the server's clock is ahead of ours; 0 if they agree within two seconds. */
export let clockAhead = 0;

/** Timeout of a call that changes something. */
const PATIENCE_MS = 15_000;

/** Timeout of the trial of a provider: its list, and up to three calls. */
const TRIAL_MS = 170_000;

/** Timeout of the beginning of a login: discovery and registration at its authorization server. */
const LOGIN_MS = 60_000;

/** Timeout of a message with large attachments. */
const UPLOAD_MS = 150_000;

const CONVERSATIONS = 'conversations';

/** Pauses before a GET is repeated, in milliseconds. */
const AGAIN_MS = [200, 800, 3000];

const get = (path) => read(path, (response) => response.json());

/**
 * What `take` makes of the response to a GET. A connection can break while the socket stays open, and nothing else would make the
 * page ask again. So a GET without a whole answer is repeated a few times; not if the server refused it, nor while the socket is
 * down, because the page says so then, and loads everything when it is back.
 */
async function read(path, take) {
  for (let repeats = 0; ; repeats += 1) {
    try {
      return await take(await answered('GET', path));
    } catch (error) {
      if (error instanceof ApiError || repeats === AGAIN_MS.length || isOffline()) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS[repeats]));
  }
}

const isOffline = () => document.body.classList.contains('offline');

/** The JSON response of a change; `{}` if it is empty. `body`: the request body; `patience`: the timeout in milliseconds. */
async function call(method, path, body, patience) {
  const response = await answered(method, path, body, patience);
  return response.json().catch(() => ({}));
}

/** The successful response of a call. Asks for the token if the server requires one. */
async function answered(method, path, body, patience = PATIENCE_MS) {
  const sent = headers();
  const type = body && { 'content-type': 'application/json' };
  // A pressed button must not stay disabled for ever.
  const signal = method === 'GET' ? undefined : AbortSignal.timeout(patience);
  const request = { method, headers: { ...sent, ...type }, body: body && JSON.stringify(body), signal };
  const response = await fetch(new URL(path, document.baseURI), request);
  noteClock(response);
  if (response.ok) return response;
  const told = await response.json().catch(() => undefined);
  // Without conversations, the page can do nothing. A 403 without a token has another cause.
  const isUseless = response.status === 403 && path === CONVERSATIONS && sent.authorization;
  if (response.status === 401 || isUseless) {
    await ask(sent.authorization, told?.error);
    return answered(method, path, body, patience);
  }
  throw new ApiError(response.status, told?.error ?? `The server answered ${response.status}.`, told);
}

function noteClock(response) {
  const date = Date.parse(response.headers.get('date'));
  if (Number.isNaN(date)) return;
  const ahead = date + 500 - Date.now(); // the header has whole seconds
  clockAhead = Math.abs(ahead) > 2000 ? ahead : 0;
}

/** Whether this can be the id of a conversation on the server; the administrator sees those of callers as `id@caller`. */
export const isConversationId = (id) => /^[\w.:-]{1,128}(@[a-z0-9][a-z0-9._-]{0,31})?$/.test(id) && !/^\.{1,2}$/.test(id);

/** An id that nothing else has; `randomUUID` needs a secure context. */
export const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

const conversation = (id) => `conversations/${encodeURIComponent(id)}`;

/** The newest failed attempts of a turn, oldest first. */
export async function getAttempts(id, turnId) {
  const { attempts } = await get(`${conversation(id)}/attempts?turnId=${encodeURIComponent(turnId)}`);
  return attempts;
}

export const getModels = () => get('models');
export const getTargets = () => get('targets');
/** What was used from this day on, with a row for each of `by`. */
export const getUsage = (by, from) => get(`usage?by=${by}&from=${from}`);
/** The callers, without their tokens. */
export const getCallers = () => get('callers');
/** Makes a caller. The answer has its `token`. */
export const makeCaller = (caller) => call('POST', 'callers', caller);
export const limitCaller = (name, limits) => call('PUT', `callers/${encodeURIComponent(name)}/limits`, limits);
export const rotateToken = (name) => call('POST', `callers/${encodeURIComponent(name)}/rotate`, {});
export const revokeToken = (name) => call('DELETE', `callers/${encodeURIComponent(name)}`);
/** The calls of other programs that pass through the server. */
export const getCalls = () => get('calls');
export const retryCallNow = (id) => call('POST', `calls/${encodeURIComponent(id)}/retry-now`);
export const giveUpCall = (id) => call('POST', `calls/${encodeURIComponent(id)}/give-up`);
/** The servers that share the conversations. */
export const getCluster = () => get('cluster');

/** The tools offered to models, and the servers that provide them. */
export const getTools = () => get('tools');
/** Begins a login at an MCP server. Returns the `url` to open, which ends on this server. */
export const beginLogin = (server) => call('POST', `mcp/${encodeURIComponent(server)}/login`, { origin: location.origin }, LOGIN_MS);
/** Forgets the login at an MCP server. */
export const endLogin = (server) => call('DELETE', `mcp/${encodeURIComponent(server)}/login`);
/** The providers, without their keys, and the vendors that can be added. */
export const getProviders = () => get('providers');
/** Tries a provider and adds it. */
export const addProvider = (provider) => call('POST', 'providers', provider, TRIAL_MS);
/** Removes a provider that was added, with its key. */
export const removeProvider = (name) => call('DELETE', `providers/${encodeURIComponent(name)}`);

/** The newest conversations, as a page: those `found`, and the `next` page, undefined at the end. */
export const getConversations = () => getPage(CONVERSATIONS);
/** A page of the conversations in whose title or messages all words occur. */
export const searchConversations = (words, next) => getPage(next ?? `conversations?search=${encodeURIComponent(words)}`);

function getPage(path) {
  return read(path, async (response) => {
    const link = /^<\/([^>]+)>; rel="next"$/.exec(response.headers.get('link'));
    return { found: await response.json(), next: link?.[1] };
  });
}

export const getStatus = (id) => get(`${conversation(id)}/status`);

const retry = (id) => (id === undefined ? 'retry' : `${conversation(id)}/retry`);

/** The retry settings of a conversation; without an id, the global ones. */
/** What a conversation sets for its model. */
export const getModelSettings = (id) => get(`${conversation(id)}/model-settings`);
export const setModelSettings = (id, settings) => call('POST', `${conversation(id)}/model-settings`, settings);
export const getRetrySettings = (id) => get(retry(id));
/** Changes some of them; null resets a field. */
export const setRetrySettings = (id, change) => call('PATCH', retry(id), change);

export const renameConversation = (id, title) => call('PATCH', conversation(id), { title });
export const deleteConversation = (id) => call('DELETE', conversation(id));

/** A conversation as a file with its name. Fails if it is deleted meanwhile. */
export function getExport(id, format) {
  return read(`${conversation(id)}/export?format=${format}`, async (response) => {
    const [, plain, encoded] = /filename="([^"]+)"(?:; filename\*=UTF-8''(.+))?/.exec(response.headers.get('content-disposition'));
    return { name: encoded ? decodeURIComponent(encoded) : plain, file: await response.blob() };
  });
}

/** The newest `limit` chunks, before `beforeSeq` if given. */
export function getHistory(id, limit, beforeSeq) {
  const before = beforeSeq === undefined ? '' : `&beforeSeq=${beforeSeq}`;
  return get(`${conversation(id)}?limit=${limit}${before}`);
}

/** The calls that wait for a person, and the tools allowed for the whole conversation. */
export const getApprovals = (id) => get(`${conversation(id)}/approvals`);
/** Answers a request for approval. */
export const answerApproval = (id, answer) => call('POST', `${conversation(id)}/approvals`, answer);
/** Starts a turn with a message that does not fit into a frame. Resolves once it has begun, to where its events begin. */
export async function startTurn(message) {
  const response = await answered('POST', 'chat', message, UPLOAD_MS);
  response.body.cancel(); // the socket has its events
  return response.headers.get('x-cursor');
}

/** Answers a question of a running tool. */
export const answerQuestion = (id, answer) => call('POST', `${conversation(id)}/questions`, answer);
/** Revokes a tool that was allowed for the whole conversation. */
export function revokeTool(id, tool) {
  return call('DELETE', `${conversation(id)}/approvals/tools/${encodeURIComponent(tool)}`);
}
