// What people and reviewers decide about a tool call, below it: a card while a person is asked, else a quiet line each.
import { ApprovalCard } from './approval.js';
import { element } from './element.js';
import { oneLine } from './visible.js';

/** The most characters that are shown of a reason. */
const LONGEST = 600;

export class Permission {
  node = element('div', { className: 'permission' });
  #review = null; // the line about it
  #card = null;
  #isResolved = false;

  /** Whether a person is asked. */
  get isAsking() {
    return this.#card !== null;
  }

  receive(event) {
    switch (event.type) {
      case 'review-started':
        return this.#reviewing();
      case 'review-completed':
        return this.#reviewed(event);
      case 'approval-requested':
        return this.#asked(event);
      case 'approval-resolved':
        return this.#resolved(event);
    }
  }

  #reviewing() {
    this.#review ??= this.#line('review');
    this.#review.textContent = 'Reviewing…';
    this.#review.classList.add('working');
  }

  #reviewed({ verdict, riskLevel, rationale }) {
    this.#review ??= this.#line('review');
    const risk = riskLevel ? ` (${oneLine(riskLevel, 40)} risk)` : '';
    this.#review.textContent = REVIEWS[verdict] ?? `Review: ${oneLine(verdict, 40)}`;
    this.#review.append(risk, because(rationale));
    this.#review.classList.remove('working');
    this.#review.classList.toggle('no', verdict === 'denied');
  }

  /** A person is asked. Nothing happens if they are asked already, or have answered. */
  #asked(request) {
    if (this.#card || this.#isResolved) return;
    if (this.#review) this.#review.append(', asking you');
    this.#card = new ApprovalCard(request, (answer) => this.#resolved(answer));
    this.node.append(this.#card.node);
    this.#card.announce();
  }

  #resolved({ verdict, reason }) {
    const { given } = this.#card ?? {};
    const where = given?.scope === 'conversation' ? ' in this conversation' : '';
    const who = given?.verdict === verdict ? ` by you${where}` : '';
    this.#remove();
    if (this.#isResolved) return;
    this.#isResolved = true;
    const line = this.#line('answer');
    line.textContent = (ANSWERS[verdict] ?? oneLine(verdict, 40)) + who;
    line.append(because(reason));
    line.classList.toggle('no', verdict !== 'allowed');
  }

  /** Nothing more comes: the turn ended, or the call has its result. */
  end() {
    this.#remove();
    if (this.#review?.classList.contains('working')) this.#review.remove();
  }

  #remove() {
    this.#card?.remove();
    this.#card = null;
  }

  #line(className) {
    const line = element('p', { className });
    this.node.append(line);
    return line;
  }
}

const REVIEWS = {
  allowed: 'Allowed by review',
  denied: 'Denied by review',
  failed: 'Review failed',
  'timed-out': 'Review took too long',
  cancelled: 'Review cancelled',
};

const ANSWERS = {
  allowed: 'Allowed',
  denied: 'Denied',
  failed: 'Approval failed',
  'timed-out': 'Not answered in time',
  cancelled: 'Not answered: the turn ended',
};

const because = (reason) => (reason ? `: ${oneLine(reason, LONGEST)}` : '');
