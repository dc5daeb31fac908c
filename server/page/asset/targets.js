// The unavailable targets, as found out by the server's turns.
import { clockAhead, getTargets } from './api.js';
import { byId, element } from './element.js';
import { moment, target } from './wording.js';

const panel = byId('targets');
const list = byId('target-list');

/** Events after which a target may be unavailable. The end of a step may make one available again. */
const TAKES = new Set(['provider-retry', 'target-switched', 'target-restored', 'error']);
const GATHER_MS = 300;
const MINUTE_MS = 60_000;
const LEAST_MS = 1000;

/** Shows them; nothing if all are available. */
export class Targets {
  #timer = 0;
  #gathers = false;

  /**
   * Fetches them again, and once more when the next one becomes available, at the latest in a minute. What is shown
   * stays if the server cannot be reached.
   */
  async load() {
    this.#gathers = false;
    this.#next(MINUTE_MS);
    try {
      this.#show((await getTargets()).targets.filter(({ until }) => until !== undefined));
    } catch {
      // No message: the "reconnecting" bar already says it.
    }
  }

  /** Handles an event of any conversation. Many in a row cause one fetch. */
  receive(event) {
    const isNews = TAKES.has(event.type) || (event.type === 'step-complete' && !panel.hidden);
    if (this.#gathers || !isNews) return;
    this.#gathers = true;
    this.#next(GATHER_MS);
  }

  #show(taken) {
    list.replaceChildren(...taken.map(row));
    panel.hidden = taken.length === 0;
    const soonest = Math.min(...taken.map(({ until }) => until - clockAhead - Date.now()));
    if (soonest < MINUTE_MS && !this.#gathers) this.#next(Math.max(soonest, LEAST_MS));
  }

  #next(ms) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.load(), ms);
  }
}

function row({ target: name, until, category }) {
  const state = `${target(category)} until ${moment(until - clockAhead)}`;
  return element('li', {}, element('span', { className: 'name', title: name }, name), element('span', { className: 'state' }, state));
}
