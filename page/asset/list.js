// The list of conversations: their status, a search in their titles, and a menu for each.
import { clockAhead, getConversations } from './api.js';
import { byId, element } from './element.js';
import { perFrame } from './frame.js';
import { opensMenu } from './menu.js';
import { ago, later, wait } from './wording.js';

const list = byId('list');
const search = byId('search');
const DOTS = { active: 'answering', waiting: 'waiting for the provider', queued: 'needs you', idle: '', closed: 'closed', failed: 'failed' };
/** The status of a conversation whose turn waits only for people. */
const NEEDS_YOU = 'queued';
const GATHER_MS = 300;
/** Interval to refresh running turns, because the start of a wait is sent only to subscribers of that conversation. */
const LOOK_AGAIN_MS = 10_000;
const LONG_MS = 3_600_000;

/** Maximum number of conversations listed. */
const MOST = 500;

export class ConversationList {
  #items = null; // as long as they were never fetched
  #current = null;
  #timer = 0;
  #again = 0;
  #rows = new Map(); // by id: the parts of a row
  #render = perFrame(() => this.#show());

  /** `onLoad()` is called after each fetch. `actions`: the menu entries. */
  constructor({ onLoad, actions }) {
    this.onLoad = onLoad;
    this.actions = actions;
    search.addEventListener('input', () => this.#render());
    // Relative times and waits must be updated.
    setInterval(() => this.#items?.some(isWaiting) && this.#render(), 1000);
    setInterval(() => this.#render(), 60_000);
  }

  /** Fetches the list. Nothing happens if the server cannot be reached. */
  async load() {
    clearTimeout(this.#again);
    try {
      this.#items = await getConversations();
      this.#render();
      this.onLoad();
    } catch {
      // No message: the "reconnecting" bar already says it.
    }
    if (this.#items?.some(({ status }) => status === 'active')) this.#again = setTimeout(() => this.load(), LOOK_AGAIN_MS);
  }

  /** Fetches the list, once for many calls in a row. */
  reload() {
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.load();
    }, GATHER_MS);
  }

  /** What is known about a conversation. */
  find(id) {
    return this.#items?.find((item) => item.id === id);
  }

  titleOf(id) {
    return this.find(id)?.title;
  }

  /** The next or previous conversation in the list. */
  next(id, step) {
    const shown = this.#matching();
    const at = shown.findIndex((item) => item.id === id);
    return at < 0 ? shown[step > 0 ? 0 : shown.length - 1]?.id : shown[at + step]?.id;
  }

  /** Number of conversations that need a person, other than the open one. */
  get needy() {
    return (this.#items ?? []).filter(({ id, status }) => status === NEEDS_YOU && id !== this.#current).length;
  }

  mark(id) {
    this.#current = id;
    this.#render();
  }

  statusChanged(id, status) {
    // Why the turn ended is not told with the status, but fetched.
    this.#change(id, { status, endReason: undefined, ...(status !== 'active' && { waitsUntil: undefined }) });
    this.reload(); // its title and its place may have changed too
  }

  /** When the wait of a conversation ends, by the server's clock; undefined if it does not wait. */
  waits(id, waitsUntil) {
    if (this.find(id)?.waitsUntil !== waitsUntil) this.#change(id, { waitsUntil });
  }

  renamed(id, title) {
    this.#change(id, { title });
  }

  deleted(id) {
    this.#items = this.#items?.filter((item) => item.id !== id) ?? null;
    this.#rows.delete(id);
    this.#render();
  }

  #change(id, facts) {
    const item = this.find(id);
    if (item) Object.assign(item, facts);
    this.#render();
  }

  #matching() {
    const words = search.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const has = ({ title }) => words.every((word) => title.toLocaleLowerCase().includes(word));
    return (this.#items ?? []).filter(has).slice(0, MOST);
  }

  #show() {
    if (!this.#items) return;
    const shown = this.#matching();
    const rows = shown.map((item) => this.#row(item));
    const isSearch = search.value.trim() !== '';
    const more = isSearch ? 0 : this.#items.length - rows.length;
    if (rows.length === 0) rows.push(element('li', { className: 'none' }, isSearch ? 'No matching titles' : 'No conversations yet'));
    if (more > 0) rows.push(element('li', { className: 'none' }, `and ${more} older conversations`));
    search.parentElement.hidden = this.#items.length === 0;
    // Moves only changed rows, so that the focus stays where it is.
    rows.forEach((row, index) => {
      if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
    });
    while (list.children.length > rows.length) list.lastChild.remove();
  }

  #row(item) {
    const { id, title, status } = item;
    const known = this.#rows.get(id) ?? this.#make(id);
    const state = isWaiting(item) ? 'waiting' : hasFailed(item) ? 'failed' : status;
    set(known.name, title || 'Untitled');
    set(known.time, aside(item));
    known.row.classList.toggle('needs-you', status === NEEDS_YOU);
    known.dot.className = `dot ${state}`;
    known.dot.ariaLabel = DOTS[state] ?? state;
    known.dot.ariaHidden = String(!known.dot.ariaLabel);
    known.menu.ariaLabel = `Actions for ${title || 'Untitled'}`;
    if (id === this.#current) known.link.setAttribute('aria-current', 'page');
    else known.link.removeAttribute('aria-current');
    return known.row;
  }

  #make(id) {
    const dot = element('span', { className: 'dot', role: 'img' });
    const name = element('span', { className: 'name' });
    const time = element('time');
    const link = element('a', { href: `#/c/${id}` }, dot, name, time);
    const menu = element('button', { type: 'button', className: 'quiet icon more' }, '⋯');
    opensMenu(menu, () => this.find(id), this.actions);
    const made = { row: element('li', {}, link, menu), link, dot, name, time, menu };
    this.#rows.set(id, made);
    return made;
  }
}

/** Whether the last turn ended in a failure. */
const hasFailed = ({ endReason }) => endReason === 'error';

const isWaiting = ({ status, waitsUntil }) => status === 'active' && waitsUntil !== undefined;

function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** The text beside the title. */
function aside(item) {
  if (item.status === NEEDS_YOU) return 'Needs you';
  if (item.status === 'active' && !isWaiting(item)) return 'Answering';
  if (hasFailed(item)) return `Failed · ${ago(item.lastActivityAt)}`;
  if (!isWaiting(item)) return ago(item.lastActivityAt);
  const until = item.waitsUntil - clockAhead;
  const left = until - Date.now();
  if (left <= 0) return 'Retrying';
  return left > LONG_MS ? `Until ${later(until)}` : wait(Math.ceil(left / 1000));
}
