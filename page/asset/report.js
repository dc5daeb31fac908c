// The final report of a turn: a card, the same from its event and from history.
import { element } from './element.js';
import { oneLine, visible } from './visible.js';

/** The tool by which a model reports. */
export const FINAL_REPORT = 'final_report';

/** The most lines of a report that are shown unfolded, and the most characters of why there is none. */
const LINES = 24;
const LONGEST = 600;

/** How a message of the host to the model begins that says why a reply came to nothing. */
const GUIDANCE = 'TURN-FAILED: ';

const FORCED = {
  'max-steps': 'this is the last step',
  overflow: 'the conversation is too long for the model',
  exhausted: 'retries are used up',
};

/** A reply came to nothing, in a line. */
export const missing = (reason) => `No report yet: ${oneLine(reason, LONGEST)}`;

/** The same from the message that the model was sent; none where it is another message. */
export const guidance = (text) => (text.startsWith(GUIDANCE) ? missing(text.slice(GUIDANCE.length)) : undefined);

/** Nothing but the report is asked for any more, in a line. */
export const forced = (by) => `Asked for the report alone: ${FORCED[by] ?? 'the turn is about to end'}.`;

/** The card. `report` is absent where it is not at hand. */
export function reportCard({ success, report, reason, context }) {
  if (!success) {
    const why = `No report: ${oneLine(reason ?? 'no reason is known', LONGEST)}`;
    const card = element('div', { className: 'report failed' }, element('p', { className: 'report-title' }, why));
    if (context) card.append(element('p', {}, oneLine(context, LONGEST)));
    return card;
  }
  const summary = element('summary', {}, 'Final report');
  if (report === undefined) {
    const where = element('p', {}, `It is the input of ${FINAL_REPORT} further up.`);
    return element('details', { className: 'report' }, summary, where);
  }
  const text = visible(JSON.stringify(report, null, 2));
  const open = text.split('\n').length <= LINES;
  return element('details', { className: 'report', open }, summary, element('pre', { tabIndex: 0 }, text));
}
