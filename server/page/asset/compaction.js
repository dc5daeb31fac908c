// Compaction: a line while earlier messages are being summarized, then the summary, collapsed.
import { element } from './element.js';
import { readable } from './readable.js';
import { oneLine, visible } from './visible.js';

/** Maximum length of the reason why there is no summary, in characters. */
const LONGEST = 300;

/** A summary. `seq`: of its chunk, if it is stored. */
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

/** A compaction in a running turn. */
export class Compaction {
  node;
  #isAhead;

  constructor({ cause, message }) {
    this.#isAhead = cause === 'ahead';
    const why = this.#isAhead ? 'is nearly' : 'is';
    const text =
      cause === 'requested'
        ? 'Summarizing earlier messages…'
        : `The conversation ${why} too long for the model: summarizing earlier messages…`;
    this.node = element('p', { className: 'note summarizing' }, message ? `${text} (${oneLine(readable(message), LONGEST)})` : text);
  }

  /** Shows the outcome, unless the turn ends with it. */
  complete({ outcome, summary, message }) {
    if (outcome === 'summarized') return this.node.replaceWith(summaryFold(summary));
    if (outcome !== 'failed' || !this.#isAhead) return this.node.remove();
    const why = message ? ` (${oneLine(message, LONGEST)})` : '';
    this.node.textContent = `Earlier messages could not be summarized${why}. All of them are sent to the model.`;
    this.node.classList.remove('summarizing');
  }

  /** The turn ended. */
  end() {
    if (this.node.classList.contains('summarizing')) this.node.remove();
  }
}
