// What people and reviewers decide about a tool call, below it: a card while a person is asked, else a quiet line each.
import { ApprovalCard } from './approval.js';
import { answer, kept, review } from './decision.js';
import { element } from './element.js';

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

  #reviewed(completed) {
    this.#review ??= this.#line('review');
    this.#review.textContent = review(completed);
    this.#review.classList.remove('working');
    this.#review.classList.toggle('no', completed.verdict === 'denied');
  }

  /** A person is asked. Nothing happens if they are asked already, or have answered. */
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

  /** What is kept with the result, where nothing was told of it. */
  kept(decisions) {
    if (this.node.childElementCount > 0) return;
    for (const decision of decisions) {
      const line = this.#line(decision.by === 'review' ? 'review' : 'answer');
      line.textContent = kept(decision);
      const isDenied = decision.verdict === 'denied';
      line.classList.toggle('no', decision.by === 'review' ? isDenied : decision.verdict !== 'allowed');
    }
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
