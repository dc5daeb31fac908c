// The calls of other programs that pass through the server: what each does, and what it waits for.
import { clockAhead, getCalls, giveUpCall, retryCallNow } from './api.js';
import { byId, element } from './element.js';
import { ends, target } from './wording.js';

const panel = byId('calls');
const list = byId('call-list');

const SOON_MS = 2000; // while there are calls
const LATER_MS = 10_000;
const TICK_MS = 1000;
const MISSING = 404; // the server passes no calls through

/** Shows them; nothing if there are none. */
export class Calls {
  #timer = 0;
  #ticker = 0;
  #rows = new Map(); // by the id of their call

  /** Fetches them, and again in a while. What is shown stays if the server cannot be reached. */
  async load() {
    clearTimeout(this.#timer);
    let next = LATER_MS;
    try {
      const { calls } = await getCalls();
      this.#show(calls);
      if (calls.length > 0) next = SOON_MS;
    } catch (error) {
      if (error.status === MISSING) return;
    }
    this.#timer = setTimeout(() => this.load(), next);
  }

  #show(calls) {
    const known = this.#rows;
    this.#rows = new Map(calls.map((call) => [call.id, known.get(call.id) ?? new Row(call.id, () => this.load())]));
    for (const call of calls) this.#rows.get(call.id).show(call);
    // Rows that stay keep their place, and a button its focus.
    for (const [id, row] of known) if (!this.#rows.has(id)) row.node.remove();
    for (const row of this.#rows.values()) if (!row.node.isConnected) list.append(row.node);
    panel.hidden = calls.length === 0;
    clearInterval(this.#ticker);
    if (calls.some(({ nextAt }) => nextAt !== undefined)) {
      this.#ticker = setInterval(() => this.#rows.forEach((row) => row.tick()), TICK_MS);
    }
  }
}

class Row {
  #name = element('span', { className: 'name' });
  #state = element('span', { className: 'state' });
  #choice = element('span', { className: 'choice' });

  constructor(id, changed) {
    const press = (order) => async ({ currentTarget: button }) => {
      button.disabled = true;
      await order(id).catch(() => {}); // it has ended meanwhile
      button.disabled = false;
      changed();
    };
    const button = (text, title, order) => {
      const made = element('button', { type: 'button', className: 'button small', title }, text);
      made.addEventListener('click', press(order));
      return made;
    };
    this.#choice.append(
      button('Retry now', 'Ask again without waiting', retryCallNow),
      button('Give up', 'End this call with the provider’s refusal', giveUpCall),
    );
    this.node = element('li', {}, this.#name, this.#state, this.#choice);
  }

  show(call) {
    this.call = call;
    const name = [call.program, call.model].filter(Boolean).join(' · ');
    this.#name.textContent = name;
    const session = call.session && `, session ${call.session}`;
    this.#name.title = `${name}, asking ${call.target}${session ?? ''}`;
    this.#state.title = call.because ?? '';
    this.#choice.hidden = call.phase !== 'waiting';
    this.tick();
  }

  tick() {
    const text = state(this.call);
    if (this.#state.textContent !== text) this.#state.textContent = text;
  }
}

function state(call) {
  const isLeft = call.listeners === 0 && call.phase !== 'kept';
  return doing(call) + (isLeft ? '; its program is gone' : '');
}

function doing({ phase, nextAt, category, retries, shared, target: asked }) {
  const why = category === undefined ? '' : `${asked} is ${target(category)}, `;
  const tried = retries > 0 ? `, retry ${retries}` : '';
  if (phase === 'waiting') {
    const seconds = Math.max(0, Math.ceil(((nextAt ?? 0) - clockAhead - Date.now()) / 1000));
    return `${why}asking again ${ends(seconds, shared)}${tried}`;
  }
  if (phase === 'asking') return `asking ${asked}${tried}`;
  if (phase === 'answering') return `answer from ${asked}`;
  return 'answered; nobody has taken the answer yet';
}
