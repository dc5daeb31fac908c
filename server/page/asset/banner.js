// The retries of a step: the countdown to the next one, and the call in progress.
import { whyItWaits } from './because.js';
import { modelChoice } from './choice.js';
import { byId } from './element.js';
import { passFocus } from './focus.js';
import * as notify from './notify.js';
import { readable } from './readable.js';
import { OFFLINE, clock, ends, failure, later, wait } from './wording.js';

/** For a longer wait, its end is shown instead of the rest, in milliseconds. */
const LONG_MS = 3_600_000;
/** From this length on, the end is shown, too. */
const CLOCK_MS = 120_000;

const banner = byId('banner');
const line = byId('wait-line');
const note = byId('wait-note');
const reason = byId('wait-reason');
const details = banner.querySelector('details');
const message = byId('wait-message');
const ring = banner.querySelector('.ring');
const retryNow = byId('retry-now');
const cancel = byId('retry-cancel');

/** Events that end a series of retries. */
const ENDS = new Set(['text-delta', 'reasoning-delta', 'tool-call', 'retry-ended', 'error', 'done', 'turn-sealed']);
/** Events that begin a turn. */
const BEGINS = new Set(['user-message', 'turn-start']);

/** Shows the retries of one conversation. */
export class Banner {
  #retry = null; // what is shown: a `RetryState`, or what of it is known
  #forSummary = false; // of earlier messages: it is asked for, not the answer
  #isAhead = false; // taken from the status, before the events that led to it
  #pressed; // the command whose effect is still to come
  #isOffline = false; // nothing is known of what the server does now
  #timer = 0;
  #choice; // of another model
  #until = 0; // epoch milliseconds of this machine's clock

  /**
   * `clockAhead()`: milliseconds by which the server's clock is ahead of ours. `onTick()`: the remaining time changed.
   */
  constructor({ onRetryNow, onCancel, clockAhead, onTick }) {
    this.clockAhead = clockAhead;
    this.onTick = onTick;
    retryNow.addEventListener('click', () => onRetryNow());
    this.#choice = modelChoice('Retry with …', onRetryNow);
    this.#choice.id = 'retry-with';
    retryNow.after(this.#choice);
    cancel.addEventListener('click', onCancel);
  }

  /** Whether the turn waits for its next retry. */
  get isWaiting() {
    return this.#retry?.phase === 'waiting';
  }

  /** Whether the turn waits for a limit of its caller, which nothing skips. */
  get #isOfCaller() {
    return this.isWaiting && this.#retry.because === 'caller-limit';
  }

  /** When the wait ends, by the server's clock; undefined if there is none. */
  get waitsUntil() {
    return this.isWaiting ? this.#until + this.clockAhead() : undefined;
  }

  /** The rest of the wait in a few characters; undefined if there is none. */
  get left() {
    const left = this.#until - Date.now();
    if (!this.isWaiting || left <= 0) return undefined;
    return left > LONG_MS ? later(this.#until) : wait(Math.ceil(left / 1000));
  }

  /** Identifies the retry shown and its phase; null if there is none. After a summary, the first wait of the answer is another one. */
  get stage() {
    return this.#retry && `${this.#retry.phase} ${this.#retry.attempt} ${this.#retry.nextAt}`;
  }

  receive(event) {
    if (event.type === 'compaction-started') this.#forSummary = true;
    if (event.type === 'compaction-completed' || BEGINS.has(event.type)) this.#forSummary = false;
    if (event.type === 'provider-retry') this.#show({ ...event, phase: 'waiting' });
    else if (event.type === 'status' && event.retry) this.#show({ ...this.#known(event.retry), ...event.retry });
    else if (this.#retry && (ENDS.has(event.type) || (BEGINS.has(event.type) && !this.#isAhead))) {
      notify.ended(outcome(event));
      this.#clear();
    }
  }

  /** Shows the retry of a status, for a page that was opened later. */
  restore(retry) {
    this.#show(retry);
    this.#isAhead = true;
  }

  /** The command that has not taken effect yet, if any. */
  set pressed(type) {
    this.#pressed = type;
    this.#tick();
  }

  /** Whether there is a connection to the server. Without one, nothing is offered or told that it alone knows. */
  set isOffline(is) {
    this.#isOffline = is;
    this.#tick();
  }

  hide() {
    this.#forSummary = false;
    this.#clear();
  }

  #clear() {
    this.#retry = null;
    this.#isAhead = false;
    clearInterval(this.#timer);
    passFocus(banner);
    banner.hidden = true;
    this.onTick();
  }

  /** What is known about a retry only from its event. */
  #known({ attempt }) {
    return this.#retry?.attempt === attempt ? { target: this.#retry.target, hinted: this.#retry.hinted, budgetLeftMs: this.#retry.budgetLeftMs } : {};
  }

  #show(retry) {
    this.#retry = retry;
    this.#isAhead = false;
    const { delayMs, nextAt, code } = retry;
    // A replayed event may be old, so `nextAt` determines the rest. A wrong clock cannot make it longer than was
    // decided.
    const left = nextAt === undefined ? delayMs : nextAt - this.clockAhead() - Date.now();
    this.#until = this.isWaiting ? Date.now() + Math.min(left, delayMs) : 0;
    const count = number(retry);
    note.textContent = [
      this.isWaiting && !this.#isOfCaller && count[0].toUpperCase() + count.slice(1),
      retry.target,
      this.isWaiting && retry.hinted && 'the provider asked for this wait',
      this.isWaiting && !retry.hinted && whyItWaits(retry.because),
      this.isWaiting && retry.shared && !this.#isOfCaller && 'this turn made no call',
      ...(this.isWaiting ? this.#times(delayMs, retry.budgetLeftMs) : []),
    ]
      .filter(Boolean)
      .join(' · ');
    const whole = readable(retry.message);
    const words = whole?.replace(`${OFFLINE}: `, ''); // which the line above it says
    const what = this.isWaiting ? code : failure(retry) + (code ? ` (${code})` : '');
    // The page of a proxy often begins with the code: `502 Bad Gateway`.
    const isSaid = code && words?.startsWith(`${code} `);
    reason.textContent = [isSaid ? '' : what, words].filter(Boolean).join(': ');
    message.textContent = retry.message ?? '';
    details.hidden = !retry.message || retry.message === whole;
    banner.hidden = false;
    clearInterval(this.#timer);
    if (this.isWaiting) this.#timer = setInterval(() => this.#tick(), 250);
    this.#tick();
    notify.offer(this.isWaiting ? delayMs : 0);
    byId('announcer').textContent = line.textContent; // said once, not every second
  }

  /** The times at which a long wait and the whole budget end. */
  #times(delayMs, budgetLeftMs) {
    return [
      delayMs >= CLOCK_MS && delayMs <= LONG_MS && `next at ${clock(this.#until)}`,
      budgetLeftMs !== undefined && delayMs + budgetLeftMs >= CLOCK_MS && `gives up at ${later(this.#until + budgetLeftMs)}`,
    ];
  }

  #tick() {
    if (!this.#retry) return;
    const left = Math.max(0, this.#until - Date.now());
    const isSkipped = this.#pressed === 'retry.now';
    const isCancelled = this.#pressed === 'retry.abort' || this.#pressed === 'chat.stop';
    const what = this.#forSummary ? 'the summary ' : '';
    const isLong = left > LONG_MS;
    const why = this.#isOfCaller ? 'Limit of this token reached' : failure(this.#retry);
    const waiting = isLong ? `${what}continues ${later(this.#until)}` : `retrying ${what}${ends(Math.ceil(left / 1000), this.#retry.shared)}`;
    const now = this.#isOffline ? 'reconnecting to see what came next' : `retrying ${what}now`;
    const text = left > 0 && (this.#isOffline || !isSkipped) ? waiting : now;
    const again = `Asking again ${what && 'for the summary '}(${number(this.#retry)})`;
    const full = this.isWaiting ? `${why}, ${text}` : again;
    if (line.textContent !== full) line.textContent = full;
    if (isCancelled) passFocus(cancel);
    cancel.disabled = isCancelled;
    // Not to *Give up*: a second press of the same key would end the turn.
    const isOffered = this.isWaiting && !this.#isOffline && !this.#isOfCaller;
    if (!isOffered || left === 0 || isSkipped) {
      passFocus(retryNow);
      passFocus(this.#choice);
    }
    retryNow.disabled = this.#choice.disabled = left === 0 || isSkipped;
    retryNow.hidden = !isOffered;
    this.#choice.classList.toggle('away', !isOffered);
    ring.classList.toggle('asking', !this.isWaiting);
    ring.style.setProperty('--left', this.#retry.delayMs > 0 ? left / this.#retry.delayMs : 0);
    if (left === 0) clearInterval(this.#timer);
    this.onTick();
  }
}

/** Announces the end of the retries in a notification. */
function outcome({ type, outcome: ended, reason }) {
  if (type === 'error' || reason === 'error' || ['exhausted', 'too-long', 'not-retryable'].includes(ended)) return 'failed';
  const isAnswer = ['text-delta', 'reasoning-delta', 'tool-call'].includes(type) || ended === 'recovered';
  return isAnswer ? 'answering' : undefined;
}

/** `retry 2 of 21` */
function number({ attempt, maxAttempts }) {
  return `retry ${attempt + 1}${maxAttempts === undefined ? '' : ` of ${maxAttempts}`}`;
}
