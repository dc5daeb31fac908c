// Texts about failures, waits and metrics.

const FAILURES = {
  rate_limited: 'Rate limited',
  overloaded: 'Server overloaded',
  server_error: 'Server error',
  network: 'Connection to the provider lost',
  timeout: 'The provider did not answer in time',
  invalid_response: 'The answer was cut short',
  quota_exhausted: 'Usage limit reached',
  context_overflow: 'The conversation is too long for this model',
  invalid_request: 'The provider refused the request',
  not_found: 'No such model',
  content_policy: 'Refused by the content policy',
  auth: 'The provider did not accept the key',
  permission: 'The key is not allowed to do this',
  cancelled: 'Cancelled by the provider',
  internal: 'Internal error in Everturn',
};

const TARGETS = {
  rate_limited: 'rate limited',
  overloaded: 'overloaded',
  quota_exhausted: 'used up',
  auth: 'key refused',
  permission: 'not permitted',
  not_found: 'not found',
  network: 'unreachable',
  timeout: 'too slow',
};

const CODES = {
  401: 'auth',
  402: 'quota_exhausted',
  403: 'permission',
  404: 'not_found',
  408: 'timeout',
  429: 'rate_limited',
  503: 'overloaded',
  529: 'overloaded',
};

/** The server's message for a turn that waits for the server's own network. */
export const OFFLINE = 'Offline, waiting for the network';

/** A failure in a few words, by its category, else by its HTTP code. */
export function failure({ category, code, message = '' }) {
  if (message.startsWith(OFFLINE)) return OFFLINE;
  const known = FAILURES[category];
  if (known) return known;
  if (/overloaded/i.test(message)) return FAILURES.overloaded;
  if (CODES[code]) return FAILURES[CODES[code]];
  return /^5\d\d$/.test(code ?? '') ? FAILURES.server_error : 'The provider failed';
}

/** The state of an unavailable target. */
export const target = (category) => TARGETS[category] ?? 'failing';

/** What was done about the failure that ended a turn, and what a person can do, one line each. */
export function aftermath({ retries = 0, waitedMs = 0, outcome, detail, advice }) {
  const tries = `${retries} ${retries === 1 ? 'retry' : 'retries'} over ${took(waitedMs)}`;
  const gaveUp = outcome === 'exhausted' || outcome === 'too-long';
  return [
    retries > 0 && gaveUp && `Gave up after ${tries}.`,
    retries > 0 && !gaveUp && `Failed after ${tries}; waiting would not help.`,
    detail && `Not retried: ${detail}.`,
    advice,
  ].filter(Boolean);
}

/** Why a turn ended, if that needs an explanation. */
export function ending(reason) {
  switch (reason) {
    case 'stop':
    case 'error': // told by the error itself
      return '';
    case 'aborted':
      return 'Stopped.';
    case 'length':
      return 'Cut off: the model reached its length limit.';
    case 'content-filter':
      return 'Cut off by the provider’s content filter.';
    case 'max-steps':
      return 'Stopped: the turn reached its step limit.';
    case 'tool-calls':
      return 'Ended: the model asked for tools that were not run.';
    default:
      return `Ended: ${reason}`;
  }
}

/** A wait in whole seconds, minutes or hours: `5 s`, `1 min 05 s`, `2 h 03 min`. */
export function wait(seconds) {
  const two = (n) => String(n).padStart(2, '0');
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}

/** When a wait ends, for which others may make room earlier if it is shared: `in 5 s`, `within 5 s`. */
export const ends = (seconds, isShared) => `${isShared ? 'within' : 'in'} ${wait(seconds)}`;

/** A measured duration: `340 ms`, `2.4 s`, `1 min 05 s`, and `7 h 32 min` for 27,105 s, as in the terminal. */
export function took(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  return wait(ms < 3_599_500 ? Math.round(ms / 1000) : Math.round(ms / 60_000) * 60);
}

/** A time hours away, by this machine's clock: `14:05` within half a day, else `Tue 14:05`. */
export function later(then, now = Date.now()) {
  const isSoon = then - now < 12 * 3_600_000;
  const day = isSoon ? {} : { weekday: 'short' };
  return new Date(then).toLocaleString(undefined, { ...day, hour: '2-digit', minute: '2-digit' });
}

/** A time of day: `12:03`. */
export function clock(then) {
  return new Date(then).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
}

/** A time with seconds: `12:03:10` today, with the date on other days. */
export function moment(then, now = Date.now()) {
  const [at, today] = [new Date(then), new Date(now)];
  const time = at.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
  if (at.toDateString() === today.toDateString()) return time;
  const year = at.getFullYear() === today.getFullYear() ? undefined : 'numeric';
  return `${at.toLocaleDateString(undefined, { year, month: 'short', day: 'numeric' })} ${time}`;
}

/** Approximately how long ago. */
export function ago(then, now = Date.now()) {
  const minutes = Math.floor((now - then) / 60_000);
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
  return new Date(then).toLocaleDateString(undefined, { month: 'short', day: 'numeric' });
}

/** The metrics of a turn on one line. */
export function figures({ model, reason, durationMs, firstTokenMs, usage, contextSize, retries, steps }) {
  const count = (n) => n.toLocaleString('en');
  const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? '' : 's'}`;
  return [
    model,
    durationMs !== undefined && took(durationMs),
    firstTokenMs !== undefined && `first token ${took(firstTokenMs)}`,
    reason !== 'aborted' && steps > 1 && plural(steps, 'step'), // whether a stopped stream counts is not told live
    retries > 0 && `${count(retries)} ${retries === 1 ? 'retry' : 'retries'}`,
    usage && usage.inputTokens + usage.outputTokens > 0 && `${count(usage.inputTokens)} in, ${count(usage.outputTokens)} out`,
    contextSize !== undefined && `context ${count(contextSize)}`,
  ]
    .filter(Boolean)
    .join(' · ');
}
