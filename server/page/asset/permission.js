// Approvals, reviews and questions of a tool call: a card while a person is asked, otherwise one line per decision.
import { ApprovalCard } from './approval.js';
import { answer, kept, review } from './decision.js';
import { element } from './element.js';
import { QuestionCard, settledLine } from './question.js';

export class Permission {
  node = element('div', { className: 'permission' });
  #review = null; // the line about it
  #card = null;
  #asker = null; // the id of the open question, and who asks
  #settled = new Set();
  #isResolved = false;

  /** Whether a person is being asked. */
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
      case 'question-asked':
        return this.#questioned(event);
      case 'question-settled':
        return this.#settle(event);
    }
  }

  #reviewing() {
    this.#review ??= this.#line('review');
    this.#review.textContent = 'Reviewing…';
    this.#review.classList.add('working');
  }

  #reviewed(completed) {
    this.#review ??= this.#line('review');
    this.#review.textContent = review(completed);
    this.#review.classList.remove('working');
    this.#review.classList.toggle('no', completed.verdict === 'denied');
  }

  /** Asks a person, unless they are being asked already or have answered. */
  #asked(request) {
    if (this.#card || this.#isResolved) return;
    this.#card = new ApprovalCard(request, (given) => this.#resolved(given));
    this.node.append(this.#card.node);
    this.#card.announce();
  }

  #resolved(given) {
    this.#remove();
    if (this.#isResolved) return;
    this.#isResolved = true;
    const line = this.#line('answer');
    line.textContent = answer(given);
    line.classList.toggle('no', given.verdict !== 'allowed');
  }

  /** A tool asks. Only the last question of a call is open. */
  #questioned(question) {
    const { questionId, asker, kind } = question;
    if (this.#settled.has(questionId) || this.#asker?.questionId === questionId) return;
    this.#remove();
    this.#asker = { questionId, asker, kind };
    this.#card = new QuestionCard(question, (given) => this.#settle({ questionId, ...given }));
    this.node.append(this.#card.node);
    this.#card.announce();
  }

  #settle(settled) {
    if (this.#settled.has(settled.questionId)) return;
    this.#settled.add(settled.questionId);
    const asked = this.#asker?.questionId === settled.questionId ? this.#asker : null;
    if (asked) this.#remove();
    // Events of older versions do not say who asked.
    if (asked || settled.asker) this.#settledLine({ ...asked, ...settled });
  }

  #settledLine(settled) {
    const line = this.#line('answer');
    line.textContent = settledLine(settled);
    line.classList.toggle('no', settled.outcome !== 'accepted');
  }

  /** Shows what is kept with the result: decisions and settled questions, if their events were not seen. */
  kept(decisions, questions) {
    for (const decision of this.node.childElementCount > 0 ? [] : decisions) {
      const line = this.#line(decision.by === 'review' ? 'review' : 'answer');
      line.textContent = kept(decision);
      const isDenied = decision.verdict === 'denied';
      line.classList.toggle('no', decision.by === 'review' ? isDenied : decision.verdict !== 'allowed');
    }
    for (const settled of questions.filter(({ questionId }) => !this.#settled.has(questionId))) this.#settledLine(settled);
  }

  /** The turn ended, or the call has a result. */
  end() {
    this.#remove();
    if (this.#review?.classList.contains('working')) this.#review.remove();
  }

  #remove() {
    this.#card?.remove();
    this.#card = this.#asker = null;
  }

  #line(className) {
    const line = element('p', { className });
    this.node.append(line);
    return line;
  }
}
