// The tools allowed for the whole open conversation: a list in which each can be revoked.
import { getApprovals, revokeTool } from './api.js';
import { byId, element } from './element.js';
import { passFocus } from './focus.js';
import { panel } from './panel.js';
import { Requests } from './requests.js';
import { visible } from './visible.js';

const list = byId('allowed-list');
const problem = byId('allowed-problem');

export class Allowed {
  #id;
  #requests = new Requests();

  #panel = panel('allowed', () => this.load());

  get isOpen() {
    return this.#panel.isOpen();
  }

  /** Shows the tools of this conversation; none while it has no id. */
  of(id) {
    if (id === this.#id) return;
    this.#id = id;
    this.#show([]);
    this.load();
  }

  /** Fetches the list. What is shown stays if the server cannot be reached. */
  async load() {
    const id = this.#id;
    if (id === undefined) return;
    const isNews = this.#requests.begin();
    try {
      const { allowedTools } = await getApprovals(id);
      if (id === this.#id && isNews()) this.#show(allowedTools ?? []);
    } catch {
      // No message: the "reconnecting" bar or the empty page already says it.
    }
  }

  /** Handles an event of the conversation: a person may have allowed a tool. */
  receive({ type, verdict }) {
    if (type === 'approval-resolved' && verdict === 'allowed') this.load();
  }

  #show(tools) {
    problem.textContent = '';
    this.#panel.button.hidden = tools.length === 0;
    if (tools.length === 0 && this.isOpen) this.#panel.close();
    list.replaceChildren(...tools.map((tool) => this.#row(tool)));
  }

  #row(tool) {
    const name = visible(tool);
    const revoke = element('button', { type: 'button', className: 'button', ariaLabel: `Revoke ${name}` }, 'Revoke');
    revoke.addEventListener('click', () => this.#revoke(tool, revoke));
    return element('li', {}, element('span', { className: 'name', title: name }, name), revoke);
  }

  async #revoke(tool, revoke) {
    passFocus(revoke, this.#panel.button);
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
