// The retry settings of the open conversation, or of all. Changes are saved on the server at once.
import { getRetrySettings, setRetrySettings } from './api.js';
import { byId, element } from './element.js';
import { Fallback } from './fallback.js';
import { passFocus } from './focus.js';

const panel = byId('settings');
const button = byId('settings-button');
const scopes = [...panel.querySelectorAll('[name=scope]')];
const enabled = byId('retry-enabled');
const preset = byId('retry-preset');
const revert = byId('retry-revert');
const reset = byId('settings-reset');
const problem = byId('settings-problem');

const PRESETS = { patient: 'Patient', interactive: 'Interactive', exponential: 'Exponential', cycling: 'Cycling' };
const ABOUT = {
  patient: 'From 5 seconds up to half an hour, for 8 hours.',
  interactive: 'Few, short retries; another model before any wait.',
  exponential: 'Each wait is twice as long as the last.',
  cycling: 'The models of a route in turn.',
};

/** The numeric fields: the setting, its unit, and the presets that use it. */
const FIGURES = [
  { input: byId('retry-count'), name: 'maxRetries', unit: 1, presets: ['interactive', 'exponential', 'cycling'] },
  { input: byId('retry-base'), name: 'baseDelayMs', unit: 1000, presets: ['interactive', 'exponential'] },
  { input: byId('retry-cap'), name: 'maxDelayMs', unit: 1000, presets: ['interactive', 'exponential'] },
];
/** Settings that are not numbers; they belong to some presets only. */
const HIDDEN = { jitter: ['interactive', 'exponential'], revert: ['interactive', 'cycling'] };

export class Settings {
  #number = 0; // of the last call: the answers of others are late
  #here; // the conversation that was open when the panel was opened
  #fallback = new Fallback({ onChange: (chains) => this.#change({ fallbackChains: this.#inherits(chains) ? null : chains }) });

  /** `conversationId()`: the open conversation, if it exists already. `model()`: the selected model. */
  constructor({ conversationId, model }) {
    this.conversationId = conversationId;
    this.model = model;
    panel.addEventListener('beforetoggle', ({ newState }) => newState === 'open' && this.#open());
    panel.addEventListener('toggle', ({ newState }) => (button.ariaExpanded = String(newState === 'open')));
    for (const scope of scopes) scope.addEventListener('change', () => this.load());
    enabled.addEventListener('change', () => this.#change({ enabled: enabled.checked }));
    preset.addEventListener('change', () => this.#change(presetChange(preset.value || null, this.state)));
    for (const figure of FIGURES) figure.input.addEventListener('change', () => this.#change(figureChange(figure)));
    revert.addEventListener('change', () => this.#change({ revert: revert.value }));
    reset.addEventListener('click', () => this.#change(nothing(this.state.set)));
    panel.addEventListener('submit', (event) => event.preventDefault());
  }

  get isOpen() {
    return panel.matches(':popover-open');
  }

  /** Settings were changed by anyone, including those that this scope inherits. */
  changed() {
    if (this.isOpen) this.load();
  }

  async load() {
    await this.#call((id) => getRetrySettings(id));
  }

  #open() {
    const [here, all] = scopes;
    this.#here = this.conversationId();
    here.disabled = this.#here === undefined;
    (here.disabled ? all : here).checked = true;
    this.load();
    this.#fallback.open(this.model()).catch(() => {}); // load() tells what is wrong
  }

  async #change(change) {
    if (change && Object.keys(change).length > 0) await this.#call((id) => setRetrySettings(id, change));
  }

  async #call(call) {
    const number = (this.#number += 1);
    const id = scopes[0].checked ? this.#here : undefined;
    try {
      const state = await call(id);
      if (number === this.#number) this.#show(state, '');
    } catch (error) {
      if (number === this.#number) this.#show(this.state, sentence(error.message));
    }
  }

  /** An empty value, so that the conversation does not inherit the global chains. */
  #inherits(chains) {
    return Object.keys(chains).length === 0 && !scopes[0].checked;
  }

  #show(state, wrong) {
    problem.textContent = wrong;
    problem.hidden = wrong === '';
    this.state = state;
    if (!state) return;
    const { set, effective } = state;
    enabled.checked = effective.enabled;
    const inherited = set.preset === undefined ? effective.preset : undefined;
    const usual = inherited ? `As configured (${PRESETS[inherited] ?? inherited})` : 'As configured';
    const options = Object.entries({ '': usual, ...PRESETS });
    preset.replaceChildren(...options.map(([value, label]) => element('option', { value }, label)));
    preset.value = set.preset ?? '';
    byId('retry-about').textContent = ABOUT[effective.preset] ?? '';
    for (const { input, name, unit, presets } of FIGURES) {
      input.closest('label').hidden = !presets.includes(effective.preset);
      // A number that is being typed stays, whoever changes settings meanwhile.
      const isTyped = input === document.activeElement && input.value !== input.defaultValue;
      input.defaultValue = set[name] === undefined ? '' : set[name] / unit;
      if (!isTyped) input.value = input.defaultValue;
      input.placeholder = effective[name] === undefined ? '' : effective[name] / unit;
    }
    revert.closest('label').hidden = effective.revert === undefined;
    revert.value = effective.revert ?? '';
    this.#fallback.show(effective.fallbackChains);
    const isUnset = Object.keys(set).length === 0;
    if (isUnset) passFocus(reset, enabled);
    reset.disabled = isUnset;
  }
}

/** Sets a preset, and resets the numbers that it does not use. */
function presetChange(to, { set }) {
  const owners = { ...HIDDEN, ...Object.fromEntries(FIGURES.map(({ name, presets }) => [name, presets])) };
  const lacking = Object.keys(owners).filter((name) => set[name] !== undefined && !owners[name].includes(to));
  return { preset: to, ...Object.fromEntries(lacking.map((name) => [name, null])) };
}

/** An empty field resets to the inherited value. Anything that is not a number changes nothing. */
function figureChange({ input, name, unit }) {
  if (input.validity.badInput) return null;
  return { [name]: input.value === '' ? null : Math.round(Number(input.value) * unit) };
}

/** Names in the API, and the names in this panel. */
const WORDS = [
  [/^retry settings: /, ''],
  [/, baseDelayMs,/, ''],
  [/^in fallbackChains, /, ''],
  [/\bbaseDelayMs\b/g, 'the first wait'],
  [/\bmaxDelayMs\b/g, 'the longest wait'],
  [/\bmaxRetries\b/g, 'the number of retries'],
  [/\bfallbackChains\b/g, 'the list of other models'],
  [/\bset preset to\b/, 'choose the schedule'],
  [/\bpreset\b/g, 'schedule'],
  [/ leads back to it: (.+) asks nothing else$/, ' would lead back to it: $1 asks no other model'],
  [/\b(\d+) ms\b/g, (_, ms) => `${ms / 1000} s`],
  [/^./, (first) => first.toUpperCase()],
];

/** The server's error about settings, with this panel's names. */
const sentence = (message) => WORDS.reduce((text, [api, ours]) => text.replace(api, ours), message);

const nothing = (set) => Object.fromEntries(Object.keys(set).map((name) => [name, null]));
