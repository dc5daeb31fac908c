// A turn as it runs: events in, transcript out.
import { element } from './element.js';
import { Passage } from './passage.js';
import { ending, figures } from './wording.js';

/** A user message as it is shown in the transcript. */
export function bubble(text, className = '') {
  return element('div', { className: `user ${className}` }, element('div', { className: 'bubble' }, text));
}

/** One turn, from its `user-message` to its `turn-sealed`. */
export class Turn {
  node = element('section', { className: 'turn' });
  sealed = false;
  failed = false;
  #passage = null;
  #stepEnded = false;
  #stepCards = [];
  #cards = new Map(); // by toolCallId; ids are unique within a step, and a result follows its step
  #figures = { retries: 0, steps: 0 };
  #foot = element('div', { className: 'foot working' }, element('span', { className: 'pulse', ariaHidden: 'true' }));

  constructor({ turnId, text }) {
    this.id = turnId;
    this.text = text;
    this.node.ariaBusy = 'true';
    this.node.append(bubble(text), this.#foot);
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
        return this.#cards.get(event.toolCallId)?.asks('waits for permission');
      case 'review-started':
        return this.#cards.get(event.toolCallId)?.asks('under review');
      case 'approval-resolved':
      case 'review-completed':
        return this.#cards.get(event.toolCallId)?.resolved(event);
      case 'step-complete':
        this.#passage?.end();
        this.#stepEnded = true;
        this.#figures.steps += 1;
        this.#figures.ttftMs ??= event.ttftMs;
        return;
      case 'step-rewound':
        return this.#rewind();
      case 'steering':
        this.#passage?.end();
        this.#append(bubble(event.text, 'steering'));
        this.#stepEnded = true;
        return;
      case 'provider-retry':
        this.#figures.retries += 1;
        return;
      case 'target-switched':
        return this.#note(`Switched from ${event.from} to ${event.to}: ${event.reason}`);
      case 'target-restored':
        return this.#note(`Back to ${event.to}.`);
      case 'error':
        this.failed = true;
        return this.#step().error(event);
      case 'done':
        return this.#done(event);
      case 'turn-sealed':
        return this.#seal();
      default: // status, turn-start, usage, queue-changed, retry-ended: nothing to show here
    }
  }

  /** Whether there is a wait: the banner says so, the pulse rests. */
  waiting(isWaiting) {
    this.#foot.classList.toggle('resting', isWaiting);
  }

  flush() {
    this.#passage?.flush();
  }

  /** The passage of the running step. */
  #step() {
    if (!this.#passage || this.#stepEnded) {
      this.#passage = new Passage();
      this.#append(this.#passage.node);
      this.#stepCards = [];
      this.#stepEnded = false;
    }
    return this.#passage;
  }

  /** Drops what was shown of the running step: it will be streamed again. */
  #rewind() {
    if (this.#stepEnded) return;
    this.#passage?.node.remove();
    this.#passage = null;
    for (const card of this.#stepCards) this.#cards.delete(card.toolCallId);
  }

  #note(text) {
    this.#append(element('p', { className: 'note' }, text));
  }

  #done({ reason, durationMs, usage, contextSize }) {
    this.failed ||= reason === 'error';
    this.aborted = reason === 'aborted';
    this.#passage?.end();
    Object.assign(this.#figures, { durationMs, usage, contextSize });
    const why = ending(reason);
    if (why) this.#note(why);
  }

  #seal() {
    this.sealed = true;
    this.#passage?.end();
    this.#cards.forEach((card) => card.end());
    this.node.ariaBusy = 'false';
    this.#foot.classList.remove('working', 'resting');
    this.#foot.textContent = figures(this.#figures);
  }

  #append(node) {
    this.#foot.before(node);
  }
}
