// The dialog in which providers are added and removed. A key leaves the page once, and does not come back.
import { addProvider, getProviders, removeProvider } from './api.js';
import { confirm } from './ask.js';
import { byId, element } from './element.js';
import { Requests } from './requests.js';
import { oneLine } from './visible.js';

const dialog = byId('providers');
const form = byId('provider-form');
const vendor = byId('provider-vendor');
const key = byId('provider-key');
const name = byId('provider-name');
const address = byId('provider-address');
const models = byId('provider-models');
const result = byId('provider-result');
const add = byId('provider-add');
const anyway = byId('provider-anyway');

const APIS = { 'openai-chat': 'Chat Completions', 'openai-responses': 'OpenAI Responses', anthropic: 'Anthropic Messages', gemini: 'Gemini' };

/** Maximum number of characters of a provider's message, and of a name. */
const LONGEST = 600;
const LONGEST_NAME = 80;

/** The status for those who may not change providers. */
const FORBIDDEN = 403;

export class Providers {
  #vendors = [];
  #requests = new Requests();
  #isTouched = false; // the user went on in the form during a trial

  /** `onChange(model)`: the models have changed; `model` answered, if one did. */
  constructor({ onChange }) {
    this.onChange = onChange;
    byId('providers-button').addEventListener('click', () => this.open());
    byId('providers-close').addEventListener('click', () => dialog.close());
    byId('offer-provider').addEventListener('click', () => this.open());
    vendor.addEventListener('change', () => this.#choose());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#add(false);
    });
    anyway.addEventListener('click', () => this.#add(true));
    for (const sign of ['input', 'focusin']) form.addEventListener(sign, () => (this.#isTouched = true));
    dialog.addEventListener('close', () => {
      key.value = '';
      tell();
    });
  }

  async open() {
    dialog.showModal();
    const focused = document.activeElement;
    await this.#load();
    if (!form.hidden && document.activeElement === focused) vendor.focus(); // else the user has begun
  }

  async #load() {
    const isNews = this.#requests.begin();
    try {
      const { providers, vendors, file } = await getProviders();
      if (!isNews()) return;
      this.#vendors = vendors;
      form.hidden = false;
      if (vendor.options.length === 0) {
        vendor.replaceChildren(...vendors.map(({ id, label }) => element('option', { value: id }, label)));
        this.#choose();
      }
      byId('provider-kept').textContent = file ? `Keys are kept in ${file}, which only its owner can read.` : 'Keys are kept until the server ends, as it keeps nothing on disk.';
      byId('provider-list').replaceChildren(...providers.map((each) => this.#row(each)));
      byId('providers-problem').textContent = '';
    } catch (error) {
      const isForbidden = error.status === FORBIDDEN;
      form.hidden ||= isForbidden;
      byId('providers-problem').textContent = `${isForbidden ? 'Providers can be changed ' : 'Not up to date: '}${error.message}`.slice(0, LONGEST);
    }
  }

  #row(provider) {
    const { keyEnd, added, problem } = provider;
    const count = provider.models === 1 ? '1 model' : `${provider.models} models`;
    const facts = [APIS[provider.api] ?? provider.api, keyEnd && `key …${keyEnd}`, count].filter(Boolean).join(' · ');
    const about = element('span', { className: 'about' }, oneLine(facts, LONGEST));
    const parts = [element('span', { className: 'name' }, oneLine(provider.name, LONGEST_NAME)), about];
    if (problem) parts.push(element('span', { className: 'reason' }, oneLine(`Its list of models cannot be read: ${problem}`, LONGEST)));
    if (!added) return element('li', {}, element('div', {}, ...parts), element('span', { className: 'about' }, 'From the configuration'));
    const remove = element('button', { type: 'button', className: 'button', ariaLabel: `Remove ${provider.name}` }, 'Remove');
    remove.addEventListener('click', () => this.#remove(provider.name));
    return element('li', {}, element('div', {}, ...parts), remove);
  }

  /** Shows what the chosen vendor needs. */
  #choose() {
    const { id, needsKey, keys, baseUrl } = this.#vendors.find((each) => each.id === vendor.value) ?? {};
    name.placeholder = id ?? '';
    address.placeholder = baseUrl ?? 'https://host/v1';
    address.required = !baseUrl;
    key.required = needsKey ?? false;
    if (!baseUrl) byId('provider-more').open = true;
    byId('provider-keys').replaceChildren(...(keys ? ['Make a key at ', link(keys)] : needsKey ? [] : ['Leave the key empty unless the endpoint needs one.']));
    tell();
  }

  async #add(isAnyway) {
    const wanted = { vendor: vendor.value, key: key.value, name: name.value, baseUrl: address.value, models: models.value.split(/[\s,]+/).filter(Boolean) };
    const given = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value.length > 0));
    const sent = [key, name, address, models].map((field) => [field, field.value]);
    const { billing } = this.#vendors.find(({ id }) => id === given.vendor) ?? {};
    this.#isTouched = false;
    busy(true);
    tell({ text: 'Trying it…' });
    try {
      const done = await addProvider({ ...given, anyway: isAnyway });
      // What was written during the trial is for the next one.
      for (const [field, value] of sent) if (field.value === value) field.value = '';
      await this.onChange(done.answered); // what is said to be offered can be chosen
      const count = done.models.length === 1 ? '1 model is offered' : `${done.models.length} models are offered`;
      const answered = done.answered ? `${done.answered} answered; ${count}.` : `${done.provider.name} was added; ${count}.`;
      tell({ kind: 'good', text: done.replaced ? `${answered} The former key is gone.` : answered, problem: done.note });
      await this.#load();
    } catch (error) {
      const problem = error.body ?? { error: error.message };
      const page = problem.category === 'quota_exhausted' ? billing : undefined;
      tell({ kind: 'bad', problem, page, canAdd: problem.anyway });
    }
    busy(false);
    if (!this.#isTouched) result.focus();
  }

  async #remove(which) {
    const sure = await confirm({ title: `Remove ${which}?`, text: 'Its key will be deleted. Conversations are kept, and can continue with another model.', action: 'Remove', keep: 'Keep' });
    if (!sure) return;
    try {
      await removeProvider(which);
      this.onChange();
    } catch (error) {
      tell({ kind: 'bad', problem: { error: error.message } });
    }
    await this.#load();
  }
}

function busy(is) {
  add.disabled = anyway.disabled = is;
  form.ariaBusy = String(is);
}

/** Shows how it went. `problem`: what the server says about it; `page`: where that can be changed. */
function tell({ kind = '', text, problem, page, canAdd = false } = {}) {
  const lines = [text, problem?.error, problem?.advice].filter(Boolean).map((line) => element('p', {}, oneLine(line, LONGEST)));
  if (page) lines.push(element('p', {}, 'Credit: ', link(page)));
  if (problem?.message) {
    const said = element('pre', { tabIndex: 0 }, problem.message.slice(0, LONGEST));
    const title = problem.category === 'network' ? 'Details' : 'Provider’s message';
    lines.push(element('details', {}, element('summary', {}, title), said));
  }
  result.className = kind;
  result.hidden = lines.length === 0;
  result.replaceChildren(...lines);
  anyway.hidden = !canAdd;
}

/** A link of the server's own list of vendors. */
function link(href) {
  return element('a', { href, target: '_blank', rel: 'noopener noreferrer' }, href.replace(/^https:\/\//, ''));
}
