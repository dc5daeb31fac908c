// The list of conversations, with a status dot each.
import { getConversations } from './api.js';
import { byId, element } from './element.js';
import { perFrame } from './frame.js';
import { ago } from './wording.js';

const list = byId('list');
const DOTS = { active: 'answering', queued: 'needs you', idle: '', closed: 'closed' };
/** The status of a conversation whose turn waits for people alone. */
const NEEDS_YOU = 'queued';
const GATHER_MS = 300;

/** The most that are listed. */
const MOST = 500;

export class ConversationList {
  #items = null; // as long as they were never fetched
  #current = null;
  #timer = 0;
  #rows = new Map(); // by id: { row, link, dot, name, time }
  #render = perFrame(() => this.#show());

  /** `onLoad()` each time the list was fetched. */
  constructor({ onLoad }) {
    this.onLoad = onLoad;
    // "5 min" gets old.
    setInterval(() => this.#render(), 60_000);
  }

  /** Fetches the list anew. Nothing happens when the server cannot be reached. */
  async load() {
    try {
      this.#items = await getConversations();
      this.#render();
      this.onLoad();
    } catch {
      // The bar that says "reconnecting" says enough.
    }
  }

  /** Fetches the list anew, once for many calls in a row. */
  reload() {
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.load();
    }, GATHER_MS);
  }

  titleOf(id) {
    return this.#items?.find((item) => item.id === id)?.title;
  }

  /** How many conversations need a person, beside the one that is shown. */
  get needy() {
    return (this.#items ?? []).filter(({ id, status }) => status === NEEDS_YOU && id !== this.#current).length;
  }

  mark(id) {
    this.#current = id;
    this.#render();
  }

  statusChanged(id, status) {
    const item = this.#items?.find((each) => each.id === id);
    if (item) item.status = status;
    this.#render();
    this.reload(); // its title and its place may have changed too
  }

  #show() {
    if (!this.#items) return;
    const rows = this.#items.slice(0, MOST).map((item) => this.#row(item));
    const more = this.#items.length - rows.length;
    if (rows.length === 0) rows.push(element('li', { className: 'none' }, 'No conversations yet'));
    if (more > 0) rows.push(element('li', { className: 'none' }, `and ${more} older conversations`));
    // Moves only what moved: the focus stays where it is.
    rows.forEach((row, index) => {
      if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
    });
    while (list.children.length > rows.length) list.lastChild.remove();
  }

  #row({ id, title, status, lastActivityAt }) {
    let known = this.#rows.get(id);
    if (!known) {
      const dot = element('span', { className: 'dot', role: 'img' });
      const name = element('span', { className: 'name' });
      const time = element('time');
      const link = element('a', { href: `#/c/${id}` }, dot, name, time);
      known = { row: element('li', {}, link), link, dot, name, time };
      this.#rows.set(id, known);
    }
    known.name.textContent = title || 'Untitled';
    known.time.textContent = status === NEEDS_YOU ? 'Needs you' : ago(lastActivityAt);
    known.row.classList.toggle('needs-you', status === NEEDS_YOU);
    known.dot.className = `dot ${status}`;
    known.dot.ariaLabel = DOTS[status] ?? status;
    if (id === this.#current) known.link.setAttribute('aria-current', 'page');
    else known.link.removeAttribute('aria-current');
    return known.row;
  }
}
