// A question of a running tool: a form, a page to open or a login, and buttons to answer.
import { ApiError } from './api.js';
import { who } from './decision.js';
import { byId, element } from './element.js';
import { field } from './field.js';
import { passFocus } from './focus.js';
import { loginButton } from './login.js';
import { oneLine, visible } from './visible.js';
import { forget, keep } from './written.js';

/** Maximum numbers of characters of a message, and of a name. */
const LONGEST = 4096;
const LONGEST_NAME = 60;

/** Sends an answer; set once. Returns whether the question was open. */
let send = async () => false;

export function listen(sender) {
  send = sender;
}

export class QuestionCard {
  #question;
  #onSettled;
  #title;
  #fields = [];
  #problem = element('p', { className: 'approval-problem', role: 'alert' });
  #controls;
  node;

  /** `onSettled({ outcome, via })` is called when the answer given here was accepted. */
  constructor(question, onSettled) {
    this.#question = question;
    this.#onSettled = onSettled;
    const asker = oneLine(question.asker, LONGEST_NAME);
    this.#title = question.kind === 'login' ? `${asker} needs a login` : `${asker} asks you`;
    const message = element('p', { className: 'question-message' }, visible(question.message.slice(0, LONGEST)));
    const choice = element('div', { className: 'approval-choice' });
    const form = element('form', { className: 'question-form', noValidate: true }, message);
    this.#controls = element('fieldset', { className: 'question-fields' });
    form.append(this.#controls, this.#problem);
    const decline = this.#button(question.kind === 'login' ? 'Go on without' : 'Decline', () => this.#answer('decline', 'declined'));
    const cancel = this.#button('Cancel', () => this.#answer('cancel', 'cancelled'));
    switch (question.kind) {
      case 'form':
        this.#fields = (question.fields ?? []).map(field);
        this.#controls.append(...this.#fields.map(({ node }) => node));
        choice.append(element('button', { className: 'button strong' }, 'Send'), decline, cancel);
        break;
      case 'url':
        this.#controls.append(...page(question.url));
        choice.append(element('button', { className: 'button strong' }, 'I opened it'), decline, cancel);
        break;
      case 'login':
        choice.append(loginButton(question.asker, 'strong'), decline);
        break;
      default:
        this.#controls.append(element('p', {}, 'This page is too old to answer it.'));
        choice.append(decline, cancel);
    }
    this.#controls.append(choice);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#send();
    });
    keep(this.#key, form);
    this.node = element('section', { className: 'approval question', ariaLabel: this.#title }, form);
  }

  /** Announces the card to screen readers. The focus stays where it is. */
  announce() {
    byId('announcer').textContent = this.#title;
  }

  /** The question is settled. */
  remove() {
    forget(this.#key);
    passFocus(this.node);
    this.node.remove();
  }

  get #key() {
    return `${this.#question.turnId} ${this.#question.questionId}`;
  }

  #button(label, act) {
    const button = element('button', { type: 'button', className: 'button' }, label);
    button.addEventListener('click', ({ detail }) => {
      // The second click of a double click may have been meant for what was here before.
      if (detail < 2) act();
    });
    return button;
  }

  #send() {
    const wrong = this.#fields.find((each) => !each.check());
    if (wrong) return wrong.focus();
    const values = this.#fields.map(({ name, value }) => [name, value()]).filter(([, value]) => value !== undefined);
    this.#answer('accept', 'accepted', this.#question.kind === 'form' ? Object.fromEntries(values) : undefined);
  }

  async #answer(action, outcome, content) {
    passFocus(this.#controls);
    this.#controls.disabled = true;
    this.node.ariaBusy = 'true';
    this.#problem.textContent = '';
    try {
      const answer = { questionId: this.#question.questionId, action, content, via: 'page' };
      if (await send(answer)) return this.#onSettled({ outcome, via: answer.via });
      this.#problem.textContent = 'Too late: the tool is no longer waiting for an answer.';
    } catch (error) {
      const isAnswer = error instanceof ApiError;
      this.#problem.textContent = isAnswer ? error.message : 'Not sent: the server cannot be reached. Try again.';
    }
    this.#controls.disabled = false;
    this.node.ariaBusy = 'false';
  }
}

/** The page that a tool asks to open: its host in full, as a link says what it wants. */
function page(href) {
  const url = URL.canParse(href) ? new URL(href) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol)) return [element('p', {}, 'It names no valid web page.')];
  const link = element('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer' }, visible(url.href.slice(0, 300)));
  const warning = url.protocol === 'http:' ? ' The connection to it is not encrypted.' : '';
  return [
    element('p', {}, 'Opens ', element('strong', {}, visible(url.host)), ' in a new tab. Check that you trust this site.', warning),
    element('p', { className: 'question-link' }, link),
  ];
}

/** The line about a settled question, in the same form from events and history. */
export function settledLine({ outcome, asker, kind, name, via }) {
  const words = { accepted: kind === 'login' ? 'Logged in' : 'Answered', declined: 'Declined to answer', cancelled: 'Dismissed the question', withdrawn: 'Question withdrawn' };
  const isAnswer = outcome !== 'withdrawn' && !(outcome === 'accepted' && kind === 'login');
  return `${words[outcome] ?? 'Settled'} (${oneLine(asker, LONGEST_NAME)})${isAnswer ? who({ name, via }) : ''}`;
}
