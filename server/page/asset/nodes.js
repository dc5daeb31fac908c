// The servers that share the conversations, if there are several.
import { getCluster } from './api.js';
import { byId, element } from './element.js';
import { panel } from './panel.js';
import { oneLine } from './visible.js';

const list = byId('node-list');
const problem = byId('nodes-problem');

/** Interval for refreshing while the panel is open. Servers announce themselves about as often. */
const AGAIN_MS = 3000;

export class Nodes {
  #timer = 0;

  #panel = panel('nodes', () => this.load(), () => clearTimeout(this.#timer));

  get isOpen() {
    return this.#panel.isOpen();
  }

  /** Fetches the servers. What is shown stays if this one cannot be reached. */
  async load() {
    clearTimeout(this.#timer);
    try {
      const { node, nodes } = await getCluster();
      this.#panel.button.hidden = node === undefined;
      list.replaceChildren(...nodes.map((other) => row(other, other.id === node)));
      problem.textContent = '';
    } catch (error) {
      problem.textContent = this.isOpen ? `Not up to date: ${error.message}` : '';
    }
    if (this.isOpen) this.#timer = setTimeout(() => this.load(), AGAIN_MS);
  }
}

function row({ name, turns, version, id, models = [], toolSources = [] }, isThis) {
  const tools = toolSources.length > 0 ? `\ntools: ${toolSources.join(', ')}` : '';
  const shownModels = models.length > 0 ? `\nmodels: ${models.join(', ')}` : '';
  const title = `${id}, version ${version}${shownModels}${tools}`;
  const shown = element('span', { className: 'name', title }, oneLine(name, 60));
  const count = turns === 1 ? '1 turn' : `${turns} turns`;
  return element('li', {}, shown, element('span', { className: 'about' }, isThis ? `${count} · this server` : count));
}
