// The tools that were allowed for the whole open conversation: listed, and asked about again once revoked.
import { getApprovals, revokeTool } from './api.js';
import { byId, element } from './element.js';
import { passFocus } from './focus.js';
import { visible } from './visible.js';

const panel = byId('allowed');
const button = byId('allowed-button');
const list = byId('allowed-list');
const problem = byId('allowed-problem');

export class Allowed {
  #id;

  constructor() {
    panel.addEventListener('beforetoggle', ({ newState }) => newState === 'open' && this.load());
    panel.addEventListener('toggle', ({ newState }) => (button.ariaExpanded = String(newState === 'open')));
  }

  get isOpen() {
    return panel.matches(':popover-open');
  }

  /** Those of this conversation; of none as long as it has no id. */
  of(id) {
    if (id === this.#id) return;
    this.#id = id;
    this.#show([]);
    this.load();
  }

  /** Fetches them anew. What is shown stays when the server cannot be reached. */
  async load() {
    const id = this.#id;
    if (id === undefined) return;
    try {
      const { allowedTools } = await getApprovals(id);
      if (id === this.#id) this.#show(allowedTools ?? []);
    } catch {
      // The bar that says "reconnecting" says enough; so does the page without its conversation.
    }
  }

  /** Takes an event of the conversation: what a person allowed may be the tool. */
  receive({ type, verdict }) {
    if (type === 'approval-resolved' && verdict === 'allowed') this.load();
  }

  #show(tools) {
    problem.textContent = '';
    button.hidden = tools.length === 0;
    if (tools.length === 0 && this.isOpen) panel.hidePopover();
    list.replaceChildren(...tools.map((tool) => this.#row(tool)));
  }

  #row(tool) {
    const name = visible(tool);
    const revoke = element('button', { type: 'button', className: 'button', ariaLabel: `Revoke ${name}` }, 'Revoke');
    revoke.addEventListener('click', () => this.#revoke(tool, revoke));
    return element('li', {}, element('span', { className: 'name', title: name }, name), revoke);
  }

  async #revoke(tool, revoke) {
    passFocus(revoke, button);
    revoke.disabled = true;
    try {
      await revokeTool(this.#id, tool);
      await this.load();
    } catch (error) {
      problem.textContent = error.message;
      revoke.disabled = false;
    }
  }
}
