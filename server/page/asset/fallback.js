// Fallback models, as part of the retry settings.
import { getModels } from './api.js';
import { byId, element } from './element.js';

const picker = byId('fallback-model');
const list = byId('fallback-list');
const adder = byId('fallback-add');

/** Edits the fallback chain of one model at a time. `onChange(chains)`: all chains after a change. */
export class Fallback {
  #chains = {};
  #models = [];

  constructor({ onChange }) {
    this.onChange = onChange;
    picker.addEventListener('change', () => this.#draw());
    adder.addEventListener('change', () => this.#set([...this.#chain(), adder.value]));
    list.addEventListener('click', ({ target }) => this.#remove(target.closest('button')));
  }

  /** Fetches the available models. `usual`: the one to show first. */
  async open(usual) {
    const { models } = await getModels();
    this.#models = models;
    const chosen = models.includes(picker.value) ? picker.value : usual;
    picker.replaceChildren(...models.map((name) => element('option', { value: name }, name)));
    if (models.includes(chosen)) picker.value = chosen;
    byId('fallback').hidden = models.length < 2;
    this.#draw();
  }

  /** `chains`: those in effect. */
  show(chains = {}) {
    this.#chains = chains;
    this.#draw();
  }

  #chain() {
    return this.#chains[picker.value] ?? [];
  }

  #set(chain) {
    const { [picker.value]: _, ...others } = this.#chains;
    this.onChange(chain.length > 0 ? { ...others, [picker.value]: chain } : others);
  }

  #remove(button) {
    if (!button) return;
    const at = [...list.children].indexOf(button.closest('li'));
    this.#set(this.#chain().toSpliced(at, 1));
  }

  #draw() {
    const chain = this.#chain();
    list.replaceChildren(...chain.map(row));
    list.hidden = chain.length === 0;
    const others = this.#models.filter((name) => name !== picker.value && !chain.includes(name));
    const label = chain.length === 0 ? 'No other model' : 'Then…';
    adder.replaceChildren(...[['', label], ...others.map((name) => [name, name])].map(([value, text]) => element('option', { value }, text)));
    adder.disabled = others.length === 0;
  }
}

function row(name) {
  const remove = element('button', { type: 'button', className: 'quiet icon', ariaLabel: `Remove ${name}`, title: 'Remove' }, '×');
  return element('li', {}, element('span', { className: 'name', title: name }, name), remove);
}
