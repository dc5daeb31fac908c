// A conversation's system prompt and parameters for its model. They are kept on the server, for a new conversation from its first
// message on.
import { getModelSettings, setModelSettings } from './api.js';
import { byId } from './element.js';

const dialog = byId('instructions');
const button = byId('instruct');
const problem = byId('instructions-problem');

const FIELDS = [
  { input: byId('own-prompt'), name: 'systemPrompt', read: String, word: 'system prompt' },
  { input: byId('own-temperature'), name: 'temperature', read: Number, word: 'temperature' },
  { input: byId('own-tokens'), name: 'maxOutputTokens', read: Number, word: 'longest answer' },
  { input: byId('own-effort'), name: 'reasoningEffort', read: String, word: 'reasoning effort' },
];

export class Instructions {
  #id;
  #set = {};

  constructor() {
    button.addEventListener('click', () => this.#open());
    byId('instructions-cancel').addEventListener('click', () => dialog.close());
    dialog.querySelector('form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#save();
    });
    this.#mark();
  }

  /** What the first message of a new conversation sets; undefined if that is nothing. */
  get first() {
    return this.#id === undefined && Object.keys(this.#set).length > 0 ? this.#set : undefined;
  }

  /** Another conversation is open; a new one if `id` is undefined. */
  of(id) {
    this.#id = id;
    this.#set = {};
    this.#mark();
    if (id) this.#load().catch(() => {}); // told if it is opened
  }

  /** The first message has made the conversation, with what was set for it. */
  adopted(id) {
    this.#id = id;
  }

  async #load() {
    const id = this.#id;
    const before = this.#set;
    const set = id ? await getModelSettings(id) : before;
    // Another conversation was opened meanwhile, or other settings were saved.
    if (id !== this.#id || before !== this.#set) return;
    this.#set = set;
    this.#mark();
  }

  async #open() {
    problem.textContent = '';
    dialog.showModal();
    const load = this.#load().catch((error) => (problem.textContent = error.message));
    this.#fill(FIELDS);
    const shown = FIELDS.map(({ input }) => input.value);
    await load;
    // What the user has changed while the settings were loading stays.
    if (dialog.open) this.#fill(FIELDS.filter(({ input }, at) => input.value === shown[at]));
  }

  #fill(fields) {
    for (const { input, name } of fields) input.value = this.#set[name] ?? '';
  }

  async #save() {
    const given = FIELDS.filter(({ input }) => input.value.trim() !== '');
    const set = Object.fromEntries(given.map(({ input, name, read }) => [name, read(input.value)]));
    const id = this.#id;
    try {
      const kept = id ? await setModelSettings(id, set) : set;
      if (id === this.#id) this.#set = kept; // else another conversation was opened meanwhile
      dialog.close();
    } catch (error) {
      problem.textContent = error.message;
    }
    this.#mark();
  }

  /** Says on the button what is set. */
  #mark() {
    const set = FIELDS.filter(({ name }) => this.#set[name] !== undefined).map(({ word }) => word);
    const label = ['Instructions and parameters', set.join(', ')].filter(Boolean).join(': ');
    button.ariaLabel = button.title = label;
    button.classList.toggle('set', set.length > 0);
  }
}
