// Fallback models, as part of the retry settings.
import { getModels } from './api.js';
import { byId, element } from './element.js';

const picker = byId('fallback-model');
const list = byId('fallback-list');
const adder = byId('fallback-add');
const add = byId('fallback-do');

/** Edits the fallback chain of one model at a time. `onChange(chains)`: all chains after a change. */
export class Fallback {
  #chains = {};
  #models = [];

  constructor({ onChange }) {
    this.onChange = onChange;
    picker.addEventListener('change', () => this.#draw());
    // Not as soon as it is chosen: arrow keys choose one after the other.
    add.addEventListener('click', () => this.#set([...this.#chain(), adder.value]));
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
    // Shown at once, so that a second change includes the first.
    this.show(chain.length > 0 ? { ...others, [picker.value]: chain } : others);
    this.onChange(this.#chains);
  }

  #remove(button) {
    if (!button) return;
    const at = [...list.children].indexOf(button.closest('li'));
    this.#set(this.#chain().toSpliced(at, 1));
  }

  #draw() {
    const chain = this.#chain();
    const [focused, chosen] = [document.activeElement, adder.value];
    const row = focused.closest('#fallback-list li');
    const at = row ? [...list.children].indexOf(row) : undefined;
    list.replaceChildren(...chain.map(item));
    list.hidden = chain.length === 0;
    const others = this.#models.filter((name) => name !== picker.value && !chain.includes(name));
    adder.replaceChildren(...others.map((name) => element('option', { value: name }, name)));
    if (others.includes(chosen)) adder.value = chosen;
    adder.closest('.setting').hidden = others.length === 0;
    adder.previousElementSibling.textContent = chain.length === 0 ? 'Ask' : 'Then ask';
    // What had the focus is gone: the row in its place has it, or what is beside.
    if (at !== undefined) (list.children[Math.min(at, chain.length - 1)]?.querySelector('button') ?? add).focus();
    else if (focused === add && others.length === 0) picker.focus();
  }
}

function item(name) {
  const remove = element('button', { type: 'button', className: 'quiet icon', ariaLabel: `Remove ${name}`, title: 'Remove' }, '×');
  return element('li', {}, element('span', { className: 'name', title: name }, name), remove);
}
