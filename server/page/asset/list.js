// The list of conversations: their status, a search in their titles and messages, and a menu for each.
import { clockAhead, getConversations } from './api.js';
import { byId, element } from './element.js';
import { perFrame } from './frame.js';
import { marked } from './mark.js';
import { opensMenu } from './menu.js';
import { Requests } from './requests.js';
import { Search } from './search.js';
import * as shelf from './shelf.js';
import { oneLine } from './visible.js';
import { ago, later, wait } from './wording.js';

const list = byId('list');
const searchBox = byId('search');
const DOTS = { active: 'answering', waiting: 'waiting for the provider', queued: 'needs you', idle: '', closed: 'closed', failed: 'failed' };
/** The status of a conversation whose turn waits only for people. */
const NEEDS_YOU = 'queued';
const GATHER_MS = 300;
/** Interval to refresh running turns, because the start of a wait is sent only to subscribers of that conversation. */
const LOOK_AGAIN_MS = 10_000;
const LONG_MS = 3_600_000;

/** Maximum number of conversations listed. */
const MOST = 500;
/** Maximum length of a found passage, in characters; the server sends less. */
const LONGEST = 300;

/** What the end of the list says of a search that has found so many. */
const SCOPES = {
  idle: () => '',
  running: () => 'Searching titles and messages…',
  all: (found) => (found === 0 ? 'No title or message has this' : 'All titles and messages were searched'),
  part: () => 'Older messages were not searched',
  failed: () => 'Only titles were searched: no answer from the server',
};

export class ConversationList {
  #items = null; // as long as they were never fetched
  #isPart = false; // there are older ones
  #current = null;
  #selected = null; // the hit that Enter opens
  #timer = 0;
  #again = 0;
  #requests = new Requests();
  #rows = new Map(); // by id: the parts of a row
  #showsArchive = false;
  #archive = element('button', { type: 'button', className: 'quiet small' });
  #archiveRow = element('li', { className: 'archive' }, this.#archive);
  #search = new Search(() => this.#render());
  #render = perFrame(() => this.#show());

  /** `onLoad()` is called after each fetch. `actions`: the menu entries. */
  constructor({ onLoad, actions }) {
    this.onLoad = onLoad;
    this.actions = actions;
    shelf.listen(() => this.#render());
    this.#archive.addEventListener('click', () => {
      this.#showsArchive = !this.#showsArchive;
      this.#render();
    });
    searchBox.addEventListener('input', () => {
      this.#selected = null;
      this.#search.for(searchBox.value);
      this.#render();
    });
    searchBox.addEventListener('keydown', (event) => this.#key(event));
    searchBox.addEventListener('blur', () => this.#render());
    searchBox.addEventListener('focus', () => this.#render());
    // Relative times and waits must be updated.
    setInterval(() => this.#items?.some(isWaiting) && this.#render(), 1000);
    setInterval(() => this.#render(), 60_000);
  }

  /** Fetches the list. Nothing happens if the server cannot be reached. */
  async load() {
    clearTimeout(this.#again);
    const isNews = this.#requests.begin();
    try {
      const { found, next } = await getConversations();
      if (!isNews()) return;
      this.#items = found;
      this.#isPart = next !== undefined;
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
    const isIt = (item) => item.id === id;
    return this.#items?.find(isIt) ?? this.#search.found.find(isIt);
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

  /** A key in the search: Escape clears it, the arrows select a hit, Enter opens it. */
  #key(event) {
    if (searchBox.value.trim() === '' || event.isComposing || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step && event.key !== 'Escape' && event.key !== 'Enter') return;
    event.preventDefault(); // Escape is not to stop the answer, too
    if (event.key === 'Escape') {
      searchBox.value = '';
      searchBox.dispatchEvent(new Event('input'));
      return;
    }
    const shown = this.#matching();
    const hit = this.#hit(shown);
    if (event.key === 'Enter' && hit) location.hash = `#/c/${hit.id}`;
    if (step) this.#select(shown[shown.indexOf(hit) + step]);
  }

  #select(hit) {
    if (!hit) return; // it was the first or the last one
    this.#selected = hit.id;
    this.#show();
    this.#rows.get(hit.id).row.scrollIntoView({ block: 'nearest' });
    byId('announcer').textContent = [hit.title || 'Untitled', hit.passage?.text].filter(Boolean).join(': ');
  }

  /** The selected one of these hits: the first, unless another was selected. */
  #hit(shown) {
    return shown.find(({ id }) => id === this.#selected) ?? shown[0];
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
    this.#outdate();
    this.#change(id, { title });
  }

  deleted(id) {
    this.#outdate();
    this.#items = this.#items?.filter((item) => item.id !== id) ?? null;
    this.#search.found = this.#search.found.filter((item) => item.id !== id);
    this.#rows.delete(id);
    this.#render();
  }

  /** A list that is under way may be from before a change made here. */
  #outdate() {
    this.#requests.outdate();
    this.reload();
  }

  #change(id, facts) {
    const item = this.find(id);
    if (item) Object.assign(item, facts);
    this.#render();
  }

  /** The words searched, in lower case. */
  get #words() {
    return searchBox.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  }

  /** The conversations to show: with the words in the title at once, in messages as they are found. */
  #matching() {
    const words = this.#words;
    const items = this.#items ?? [];
    if (words.length === 0) {
      const shown = this.#showsArchive ? items : items.filter((item) => !isAway(item));
      // Stable: the latest of each kind come first.
      return shown.toSorted((a, b) => rank(a) - rank(b)).slice(0, MOST);
    }
    const known = new Map(items.map((item) => [item.id, item]));
    const has = ({ title }) => words.every((word) => title.toLocaleLowerCase().includes(word));
    const matching = new Map(items.filter(has).map((item) => [item.id, item]));
    // An entry that is also in the list is kept up to date there.
    for (const item of this.#search.found) matching.set(item.id, { ...(known.get(item.id) ?? item), passage: item.passage });
    return [...matching.values()].sort((a, b) => b.lastActivityAt - a.lastActivityAt).slice(0, MOST);
  }

  #show() {
    if (!this.#items) return;
    const shown = this.#matching();
    const isSearch = searchBox.value.trim() !== '';
    const hit = isSearch && document.activeElement === searchBox ? this.#hit(shown) : undefined;
    const rows = shown.map((item) => this.#row(item, item === hit));
    const archived = isSearch ? 0 : this.#items.filter(isAway).length;
    const more = isSearch ? 0 : this.#items.length - rows.length - (this.#showsArchive ? 0 : archived);
    const note = isSearch ? SCOPES[this.#search.scope](rows.length) : rows.length === 0 && archived === 0 ? 'No conversations yet' : '';
    if (note) rows.push(element('li', { className: 'none' }, note));
    if (more > 0) rows.push(element('li', { className: 'none' }, `and ${more} older conversations`));
    if (this.#isPart && !isSearch) rows.push(element('li', { className: 'none' }, 'Search to find older conversations'));
    if (archived > 0) {
      set(this.#archive, this.#showsArchive ? 'Hide archived' : `Archived (${archived})`);
      this.#archive.ariaExpanded = String(this.#showsArchive);
      rows.push(this.#archiveRow);
    }
    searchBox.parentElement.hidden = this.#items.length === 0;
    // Moves only changed rows, so that the focus stays where it is.
    rows.forEach((row, index) => {
      if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
    });
    while (list.children.length > rows.length) list.lastChild.remove();
  }

  #row(item, isSelected) {
    const { id, title, status, passage } = item;
    const known = this.#rows.get(id) ?? this.#make(id);
    const state = isWaiting(item) ? 'waiting' : hasFailed(item) ? 'failed' : status;
    set(known.name, title || 'Untitled');
    set(known.time, [callerOf(id), aside(item)].filter(Boolean).join(' · '));
    this.#found(known, passage);
    known.row.classList.toggle('selected', isSelected);
    known.row.classList.toggle('away', isAway(item));
    known.pin.hidden = !shelf.isPinned(id);
    known.row.classList.toggle('needs-you', status === NEEDS_YOU);
    known.dot.className = `dot ${state}`;
    known.dot.ariaLabel = DOTS[state] ?? state;
    known.dot.ariaHidden = String(!known.dot.ariaLabel);
    known.menu.ariaLabel = `Actions for ${title || 'Untitled'}`;
    if (id === this.#current) known.link.setAttribute('aria-current', 'page');
    else known.link.removeAttribute('aria-current');
    return known.row;
  }

  /** Shows in which message the words were found. */
  #found({ passage: node }, passage) {
    const text = passage ? oneLine(passage.text, LONGEST) : '';
    const key = text && `${this.#words.join(' ')} ${text}`;
    if (node.dataset.key === key) return;
    node.dataset.key = key;
    node.hidden = text === '';
    node.replaceChildren(...(passage?.role === 'user' ? ['You: '] : []), ...marked(text, this.#words));
  }

  #make(id) {
    const dot = element('span', { className: 'dot', role: 'img' });
    const name = element('span', { className: 'name' });
    const pin = element('span', { className: 'pin', role: 'img', ariaLabel: 'Pinned', hidden: true }, '★');
    const time = element('time');
    const passage = element('span', { className: 'found', hidden: true });
    const link = element('a', { href: `#/c/${id}` }, dot, name, pin, time, passage);
    const menu = element('button', { type: 'button', className: 'quiet icon more' }, '⋯');
    opensMenu(menu, () => this.find(id), this.actions);
    const made = { row: element('li', {}, link, menu), link, dot, name, pin, time, passage, menu };
    this.#rows.set(id, made);
    return made;
  }
}

/** Whether it is archived. One that needs a person or is being answered is shown all the same. */
const isAway = ({ id, status }) => shelf.isArchived(id) && status !== NEEDS_YOU && status !== 'active';

/** Pinned ones first, archived ones last. */
const rank = (item) => (shelf.isPinned(item.id) ? 0 : isAway(item) ? 2 : 1);

/** Whether the last turn ended in a failure. */
const hasFailed = ({ endReason }) => endReason === 'error';

const isWaiting = ({ status, waitsUntil }) => status === 'active' && waitsUntil !== undefined;

function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Whose it is, for the administrator, who sees all; empty = its own. */
const callerOf = (id) => id.split('@')[1];

/** The text beside the title. */
function aside(item) {
  if (item.status === NEEDS_YOU) return 'Needs you';
  if (item.status === 'active' && !isWaiting(item)) return 'Answering';
  if (hasFailed(item)) return `Failed · ${ago(item.lastActivityAt)}`;
  if (!isWaiting(item)) return ago(item.lastActivityAt);
  const until = item.waitsUntil - clockAhead;
  const left = until - Date.now();
  if (left <= 0) return document.body.classList.contains('offline') ? ago(item.lastActivityAt) : 'Retrying';
  return left > LONG_MS ? `Until ${later(until)}` : wait(Math.ceil(left / 1000));
}
