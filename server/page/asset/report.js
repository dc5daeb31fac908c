// The final report of a turn: a card, in the same form from events and history.
import { readableReport } from './arguments.js';
import { element } from './element.js';
import { oneLine } from './visible.js';

/** The name of the reporting tool. */
export const FINAL_REPORT = 'final_report';

/** Maximum numbers of lines of a report shown expanded, and of characters of the reason why there is none. */
const LINES = 24;
const LONGEST = 600;

/** Prefix of guidance messages to the model. */
const GUIDANCE = 'TURN-FAILED: ';

const FORCED = {
  'max-steps': 'this is the last step',
  overflow: 'the conversation is too long for the model',
  exhausted: 'no retries are left',
};

/** A failed reply, on one line. */
export const missing = (reason) => `No report yet: ${oneLine(reason, LONGEST)}`;

/** The same from the message to the model; nothing for other messages. */
export const guidance = (text) => (text.startsWith(GUIDANCE) ? missing(text.slice(GUIDANCE.length)) : undefined);

/** Only the report is on offer, on one line. */
export const forced = (by) => `Asking only for the report: ${FORCED[by] ?? 'the turn is about to end'}.`;

/** The card. `report` is absent if it is not available. */
export function reportCard({ success, report, reason, context }) {
  if (!success) {
    const why = `No report: ${oneLine(reason ?? 'no reason is known', LONGEST)}`;
    const card = element('div', { className: 'report failed' }, element('p', { className: 'report-title' }, why));
    if (context) card.append(element('p', {}, oneLine(context, LONGEST)));
    return card;
  }
  const summary = element('summary', {}, 'Final report');
  if (report === undefined) {
    const where = element('p', {}, `See the input of ${FINAL_REPORT} above.`);
    return element('details', { className: 'report' }, summary, where);
  }
  const lines = JSON.stringify(report, null, 1).split(/\n|\\n/).length; // those of its texts, too
  const fields = element('div', { className: 'fields', tabIndex: 0, role: 'group', ariaLabel: 'Final report' });
  fields.append(readableReport(report));
  return element('details', { className: 'report', open: lines <= LINES }, summary, fields);
}
