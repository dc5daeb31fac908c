// The failed attempts of a turn, collapsed below its metrics and fetched when expanded.
import { whyItWaits } from './because.js';
import { element } from './element.js';
import { failure, moment, took } from './wording.js';

/** The source of the attempts, set once. `getAttempts(turnId)` resolves to a list, oldest first. */
let getAttempts = async () => [];

export function provide(source) {
  getAttempts = source;
}

/** The collapsed list for a turn with retries; nothing for others. */
export function attemptsOf({ turnId, retries }) {
  if (turnId === undefined || !(retries > 0)) return [];
  const list = element('ol');
  const fold = element('details', { className: 'attempts' }, element('summary', {}, 'Failed attempts'), list);
  fold.addEventListener('toggle', () => fold.open && list.children.length === 0 && load(list, turnId));
  return [fold];
}

async function load(list, turnId) {
  try {
    const attempts = await getAttempts(turnId);
    list.replaceChildren(...attempts.map(line));
    if (attempts.length === 0) list.append(element('li', {}, 'No details were kept.'));
  } catch (error) {
    list.replaceChildren();
    list.append(element('li', { role: 'alert' }, `Could not load the attempts: ${error.message}`));
  }
}

function line({ target, category, code, message, failedAt, latencyMs, waitMs, because }) {
  const facts = [
    moment(failedAt),
    target,
    failure({ category, code, message }),
    latencyMs !== undefined && `after ${took(latencyMs)}`,
    waitMs === undefined ? 'not retried' : waitMs === 0 ? 'next attempt at once' : `waited ${took(waitMs)}`,
    whyItWaits(because),
  ];
  return element('li', {}, facts.filter(Boolean).join(' · '), element('div', { className: 'said' }, message));
}
