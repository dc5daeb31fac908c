// Earlier messages that were summarized for the model: a line while it is done, then a fold with the summary.
import { element } from './element.js';
import { oneLine, visible } from './visible.js';

/** The most characters that are shown of why there is no summary. */
const LONGEST = 300;

/** A summary as it is shown. `seq`: of its chunk, where it is stored. */
export function summaryFold(text, seq) {
  const node = element(
    'details',
    { className: 'compaction' },
    element('summary', {}, 'Earlier messages were summarized for the model'),
    element('div', { className: 'thought', tabIndex: 0 }, visible(text)),
  );
  if (seq !== undefined) node.dataset.seq = seq;
  return node;
}

/** One compaction of a turn that runs. */
export class Compaction {
  node;
  #isAhead;

  constructor({ cause }) {
    this.#isAhead = cause === 'ahead';
    const why = this.#isAhead ? 'is nearly' : 'is';
    const text = `The conversation ${why} too long for the model: summarizing earlier messages…`;
    this.node = element('p', { className: 'note summarizing' }, text);
  }

  /** How it ended. A turn that ends with it says so itself. */
  complete({ outcome, summary, message }) {
    if (outcome === 'summarized') return this.node.replaceWith(summaryFold(summary));
    if (outcome !== 'failed' || !this.#isAhead) return this.node.remove();
    const why = message ? ` (${oneLine(message, LONGEST)})` : '';
    this.node.textContent = `Earlier messages could not be summarized${why}. The model is sent all of them.`;
    this.node.classList.remove('summarizing');
  }

  /** Nothing more comes. */
  end() {
    if (this.node.classList.contains('summarizing')) this.node.remove();
  }
}
