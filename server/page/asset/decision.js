// The decision about a tool call on one line, in the same form from events and history.
import { oneLine } from './visible.js';

/** Maximum numbers of characters of a reason, and of a name or a rating. */
const LONGEST = 600;
const NAME = 60;
const RATING = 40;

/** A person's answer. */
export function answer({ verdict, scope, name, via, reason }) {
  const what = scope === 'conversation' ? ' for this conversation' : '';
  return (ANSWERS[verdict] ?? oneLine(verdict, NAME)) + by(name) + what + where(via) + because(reason);
}

/** Who answered and where, as far as known. */
export const who = ({ name, via }) => by(name) + where(via);

const by = (name) => (name ? ` by ${oneLine(name, NAME)}` : '');
const where = (via) => (via ? ` (${oneLine(VIA[via] ?? via, NAME)})` : '');

/** The outcome of a review. */
export function review({ verdict, riskLevel, rationale }) {
  const risk = riskLevel ? ` (${oneLine(riskLevel, RATING)} risk)` : '';
  return (REVIEWS[verdict] ?? `Review: ${oneLine(verdict, NAME)}`) + risk + because(rationale);
}

/** A decision as kept with the result of its call. */
export function kept(decision) {
  const { by, verdict, reason, riskLevel } = decision;
  switch (by) {
    case 'person':
      return answer(decision);
    case 'review': {
      // The reason why a review reached no decision is shown with the result, or to the person who was asked.
      const isDecided = verdict === 'allowed' || verdict === 'denied';
      return review({ verdict, riskLevel, rationale: isDecided ? reason : undefined });
    }
    case 'grant':
      return 'Allowed earlier for this conversation';
    case 'rule':
      return verdict === 'allowed' ? 'Allowed by policy' : 'Denied by policy';
    default:
      return answer(decision);
  }
}

const ANSWERS = {
  allowed: 'Allowed',
  denied: 'Denied',
  failed: 'Approval failed',
  'timed-out': 'Not answered in time',
  cancelled: 'Not answered: the turn ended',
};

const REVIEWS = {
  allowed: 'Allowed by review',
  denied: 'Denied by review',
  failed: 'Review failed',
  'timed-out': 'Review took too long',
  cancelled: 'Review cancelled',
};

const VIA = { http: 'HTTP', websocket: 'WebSocket' };

const because = (reason) => (reason ? `: ${oneLine(reason, LONGEST)}` : '');
