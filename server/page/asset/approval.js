// A tool call that waits for a person: what is to run, with which arguments, why, and buttons to answer.
import { ApiError, clockAhead } from './api.js';
import { readableArguments } from './arguments.js';
import { byId, element } from './element.js';
import { passFocus } from './focus.js';
import { oneLine } from './visible.js';
import { later, wait } from './wording.js';
import { forget, keep } from './written.js';

/** For a longer wait, its end is shown instead of the rest, in milliseconds. */
const LONG_MS = 3_600_000;

/** Maximum length of a reason for a denial, in characters of up to four bytes; the server accepts 4,096 bytes. */
const LONGEST = 1000;

/** Sends an answer; set once. Returns whether the call was waiting for it. */
let send = async () => false;

export function listen(sender) {
  send = sender;
}

export class ApprovalCard {
  #request;
  #onTaken;
  #title;
  #timer = element('p', { className: 'approval-timer', role: 'timer' });
  #problem = element('p', { className: 'approval-problem', role: 'alert' });
  #reason = element('input', { type: 'text', ariaLabel: 'Reason for a denial', placeholder: 'Reason (optional)' });
  #buttons;
  #ticks;
  #isShown = false;
  node;

  /** `onTaken({ verdict, scope, reason, via })` is called when the answer given here was accepted. */
  constructor(request, onTaken) {
    this.#request = request;
    this.#onTaken = onTaken;
    const tool = oneLine(request.toolName, 60);
    this.#title = `${tool} needs your approval`;
    this.#reason.maxLength = LONGEST;
    this.#reason.autocomplete = 'off';
    const once = this.#button('Allow once', 'strong', () => this.#answer('allowed', 'call'));
    const wide = `Allow ${tool} in this conversation`;
    const always = this.#button(wide, 'always', () => this.#answer('allowed', 'conversation'));
    const deny = element('button', { type: 'submit', className: 'button' }, 'Deny');
    this.#buttons = [once, always, deny];
    const denial = element('form', { className: 'denial' }, this.#reason, deny);
    denial.addEventListener('submit', (event) => {
      event.preventDefault();
      if (!deny.disabled) this.#answer('denied', undefined, this.#reason.value.trim() || undefined);
    });
    keep(this.#key, denial);
    const input = element('div', { className: 'approval-input', tabIndex: 0, role: 'group', ariaLabel: 'Arguments' });
    input.append(readableArguments(request.input));
    const why = request.reason && element('p', { className: 'approval-why' }, oneLine(request.reason, LONGEST));
    const choice = element('div', { className: 'approval-choice' }, once, always, denial);
    const parts = [why, input, this.#timer, choice, this.#problem].filter(Boolean);
    this.node = element('section', { className: 'approval', ariaLabel: this.#title }, ...parts);
    this.#ticks = request.until !== undefined && setInterval(() => this.#tick(), 1000);
    this.#tick();
  }

  /** Announces the card to screen readers. The focus stays where it is. */
  announce() {
    byId('announcer').textContent = this.#title;
  }

  /** The call no longer waits for an answer. */
  remove() {
    clearInterval(this.#ticks);
    forget(this.#key);
    passFocus(this.node);
    this.node.remove();
  }

  get #key() {
    const { turnId, stepId, toolCallId } = this.#request;
    return `${turnId} ${stepId} ${toolCallId}`;
  }

  #button(label, kind, act) {
    const button = element('button', { type: 'button', className: `button ${kind}` }, label);
    button.addEventListener('click', ({ detail }) => {
      // The second click of a double click may have been meant for what was here before.
      if (detail < 2) act();
    });
    return button;
  }

  async #answer(verdict, scope, reason) {
    const { turnId, stepId, toolCallId } = this.#request;
    this.#enable(false);
    this.#problem.textContent = '';
    const answer = { verdict, scope, reason, via: 'page' };
    try {
      if (await send({ turnId, stepId, toolCallId, ...answer })) return this.#onTaken(answer);
      this.#problem.textContent = 'Too late: the call is no longer waiting for an answer.';
    } catch (error) {
      const isAnswer = error instanceof ApiError;
      this.#problem.textContent = isAnswer ? error.message : 'Not sent: the server cannot be reached. Try again.';
    }
    this.#enable(true);
  }

  #enable(may) {
    if (!may) passFocus(this.node);
    for (const control of [...this.#buttons, this.#reason]) control.disabled = !may;
    this.node.ariaBusy = String(!may);
  }

  #tick() {
    const { until } = this.#request;
    if (until === undefined) return;
    const end = until - clockAhead;
    const left = end - Date.now();
    const when = left > LONG_MS ? later(end) : `in ${wait(Math.ceil(left / 1000))}`;
    const text = left > 0 ? `Denied ${when} if nobody answers` : 'Time is up';
    if (this.#timer.textContent !== text) this.#timer.textContent = text;
    // A card that is no longer shown has no deadline.
    if (left <= 0 || this.#wasShown()) clearInterval(this.#ticks);
  }

  #wasShown() {
    const was = this.#isShown;
    this.#isShown = this.node.isConnected;
    return was && !this.#isShown;
  }
}
