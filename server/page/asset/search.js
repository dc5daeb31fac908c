// Searches the titles and messages of all conversations on the server, once typing pauses.
import { searchConversations } from './api.js';

const TYPING_MS = 300;
/** How many conversations, and requests, a search ends after. A request reads a bounded part of what is stored. */
const MOST = 50;
const REQUESTS = 40;

export class Search {
  #text = '';
  #timer = 0;
  #abandon = () => {};

  /** Conversations that were found. */
  found = [];
  /** What was searched: `idle`, `running`, `all`, `part` (the most recent ones) or `failed`. */
  scope = 'idle';

  /** `onChange()` is called when something was found, and at the end. */
  constructor(onChange) {
    this.onChange = onChange;
  }

  /** Searches for a text instead of the previous one. */
  for(typed) {
    const text = typed.trim().slice(0, 200);
    if (text === this.#text) return;
    this.#abandon();
    clearTimeout(this.#timer);
    Object.assign(this, { found: [], scope: text ? 'running' : 'idle' });
    this.#text = text;
    if (text) this.#timer = setTimeout(() => this.#run(text), TYPING_MS);
  }

  async #run(text) {
    let isCurrent = true;
    this.#abandon = () => (isCurrent = false);
    let scope = 'part';
    let next;
    for (let requests = 0; isCurrent && requests < REQUESTS && this.found.length < MOST; requests += 1) {
      const page = await searchConversations(text, next).catch(() => null);
      if (!isCurrent) return;
      if (page) this.found.push(...page.found);
      next = page?.next;
      if (!next) {
        scope = page ? 'all' : 'failed';
        break;
      }
      this.onChange();
    }
    if (!isCurrent) return;
    this.scope = scope;
    this.onChange();
  }
}
