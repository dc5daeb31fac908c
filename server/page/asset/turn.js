// A running turn: converts events to transcript nodes.
import { Compaction } from './compaction.js';
import { Passage } from './passage.js';
import { forced, missing, reportCard } from './report.js';
import { Section, bubble, said } from './section.js';

/** One turn, from its first event to its `turn-sealed`. */
export class Turn {
  sealed = false;
  failed = false;
  aborted = false;
  #section = new Section();
  #message = null;
  #passage = null;
  #compaction = null; // the last one
  #isSummarized = false;
  #stepEnded = false;
  #stepCards = [];
  #cards = new Map(); // by toolCallId; ids are unique within a step, and a result follows its step
  #figures = { retries: 0, steps: 0 };

  /** `text` is absent in a turn that repeats another. */
  constructor({ turnId, text, images = [] }) {
    this.id = turnId;
    this.#section.begin();
    if (text === undefined) return;
    const nodes = said(text, images);
    this.#message = nodes[0];
    nodes.forEach((node) => this.#section.append(node));
  }

  /** Whether a tool was called. */
  get hasCards() {
    return this.#cards.size > 0;
  }

  /** Whether nothing of it is kept. */
  get isBlank() {
    return !this.#passage && !this.#stepEnded && !this.#isSummarized;
  }

  get node() {
    return this.#section.node;
  }

  receive(event) {
    switch (event.type) {
      case 'text-delta':
        return this.#step().text(event.delta);
      case 'reasoning-delta':
        return this.#step().reasoning(event.delta);
      case 'tool-call': {
        const card = this.#step().call(event);
        this.#cards.set(event.toolCallId, card);
        return this.#stepCards.push(card);
      }
      case 'tool-output':
        return this.#cards.get(event.toolCallId)?.output(event);
      case 'tool-result':
        return this.#cards.get(event.toolCallId)?.result(event);
      case 'approval-requested':
      case 'approval-resolved':
      case 'question-asked':
      case 'question-settled':
      case 'review-started':
      case 'review-completed':
        return this.#cards.get(event.toolCallId)?.permission(event);
      case 'compaction-started':
        return this.#section.append((this.#compaction = new Compaction(event)).node);
      case 'compaction-completed':
        this.#isSummarized ||= event.outcome === 'summarized';
        return this.#compaction?.complete(event);
      case 'step-complete':
        this.#passage?.end();
        this.#stepEnded = true;
        this.#figures.steps += 1;
        return;
      case 'step-rewound':
        return this.#rewind();
      case 'steering':
        this.#passage?.end();
        this.#section.append(bubble(event.text, 'steering'));
        this.#stepEnded = true;
        return;
      case 'status':
        // A retry that was scheduled and then cancelled was never made.
        if (event.retry?.phase === 'asking') this.#figures.retries += 1;
        return;
      case 'target-switched':
        return this.#section.note(`${event.role === 'reviewer' ? 'The review switched' : 'Switched'} to ${event.to}: ${event.reason}.`);
      case 'target-restored':
        return this.#section.note(`Back to ${event.to}.`);
      case 'report-missing':
        return this.#section.note(missing(event.reason));
      case 'report-forced':
        return this.#section.note(forced(event.by));
      case 'final-report':
        return this.#section.append(reportCard(event));
      case 'turn-start':
        if (this.#message && event.messageSeq !== undefined) this.#message.dataset.seq = event.messageSeq;
        return;
      case 'error':
        this.failed = true;
        return this.#step().error(event);
      case 'done':
        return this.#done(event);
      case 'turn-sealed':
        return this.#seal();
      default: // usage, queue-changed, provider-retry, retry-ended, provider-silent: nothing to show here
    }
  }

  /** Whether the turn waits, as shown by the banner or an approval card; the dot does not pulse then. */
  waiting(isWaiting) {
    this.#section.rest(isWaiting || [...this.#cards.values()].some((card) => card.isAsking));
  }

  /** Another turn repeats this one. */
  replace() {
    this.#section.replace();
  }

  flush() {
    this.#passage?.flush();
  }

  /** The output of the running step. */
  #step() {
    if (!this.#passage || this.#stepEnded) {
      this.#passage = new Passage();
      this.#section.append(this.#passage.node);
      this.#stepCards = [];
      this.#stepEnded = false;
    }
    return this.#passage;
  }

  /** Discards what was shown of the running step; it will be streamed again. */
  #rewind() {
    if (this.#stepEnded) return;
    this.#passage?.node.remove();
    this.#passage = null;
    for (const card of this.#stepCards) this.#cards.delete(card.toolCallId);
  }

  #done({ reason, model, durationMs, firstTokenMs, usage, contextSize }) {
    this.failed ||= reason === 'error';
    this.aborted = reason === 'aborted';
    this.#passage?.end();
    Object.assign(this.#figures, { reason, model, durationMs, firstTokenMs, usage, contextSize });
    this.#section.ended(reason);
  }

  #seal() {
    this.sealed = true;
    this.#passage?.end();
    this.#compaction?.end();
    this.#cards.forEach((card) => card.end());
    this.#section.seal({ turnId: this.id, ...this.#figures });
  }
}
