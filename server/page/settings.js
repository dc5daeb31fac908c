// The retry settings: of the open conversation, or of all. What is changed is kept by the server at once.
import { getRetrySettings, setRetrySettings } from './api.js';
import { byId, element } from './element.js';

const panel = byId('settings');
const button = byId('settings-button');
const scopes = [...panel.querySelectorAll('[name=scope]')];
const enabled = byId('retry-enabled');
const preset = byId('retry-preset');
const problem = byId('settings-problem');

const PRESETS = { patient: 'Patient', interactive: 'Interactive', exponential: 'Exponential', cycling: 'Cycling' };
const ABOUT = {
  patient: 'From 5 seconds up to half an hour, for 8 hours.',
  interactive: 'Few, short retries; another model before any wait.',
  exponential: 'Each wait is twice as long as the last.',
  cycling: 'The models of a route in turn.',
};

/** The fields with a number: the setting, how many of its units are one, and the presets that have it. */
const FIGURES = [
  { input: byId('retry-count'), name: 'maxRetries', unit: 1, presets: ['interactive', 'exponential', 'cycling'] },
  { input: byId('retry-base'), name: 'baseDelayMs', unit: 1000, presets: ['interactive', 'exponential'] },
  { input: byId('retry-cap'), name: 'maxDelayMs', unit: 1000, presets: ['interactive', 'exponential'] },
];
/** What can be set elsewhere, and belongs to some presets only. */
const HIDDEN = { jitter: ['interactive', 'exponential'], revert: ['interactive'] };

export class Settings {
  #number = 0; // of the last call: the answers of others are late

  /** `conversationId()`: the one that is open, if it is one already. */
  constructor({ conversationId }) {
    this.conversationId = conversationId;
    panel.addEventListener('beforetoggle', ({ newState }) => newState === 'open' && this.#open());
    panel.addEventListener('toggle', ({ newState }) => (button.ariaExpanded = String(newState === 'open')));
    for (const scope of scopes) scope.addEventListener('change', () => this.load());
    enabled.addEventListener('change', () => this.#change({ enabled: enabled.checked }));
    preset.addEventListener('change', () => this.#change(presetChange(preset.value || null, this.state)));
    for (const figure of FIGURES) figure.input.addEventListener('change', () => this.#change(figureChange(figure)));
    byId('settings-reset').addEventListener('click', () => this.#change(nothing(this.state.set)));
    panel.addEventListener('submit', (event) => event.preventDefault());
  }

  get isOpen() {
    return panel.matches(':popover-open');
  }

  /** Somebody changed settings: also those that this scope inherits. */
  changed() {
    if (this.isOpen) this.load();
  }

  async load() {
    await this.#call((id) => getRetrySettings(id));
  }

  #open() {
    const [here, all] = scopes;
    here.disabled = this.conversationId() === undefined;
    (here.disabled ? all : here).checked = true;
    this.load();
  }

  async #change(change) {
    if (change && Object.keys(change).length > 0) await this.#call((id) => setRetrySettings(id, change));
  }

  async #call(call) {
    const number = (this.#number += 1);
    const id = scopes[0].checked ? this.conversationId() : undefined;
    try {
      const state = await call(id);
      if (number === this.#number) this.#show(state, '');
    } catch (error) {
      if (number === this.#number) this.#show(this.state, sentence(error.message));
    }
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
      input.value = set[name] === undefined ? '' : set[name] / unit;
      input.placeholder = effective[name] === undefined ? '' : effective[name] / unit;
    }
    byId('settings-reset').disabled = Object.keys(set).length === 0;
  }
}

/** Sets a preset, and resets the figures that it does not have. */
function presetChange(to, { set }) {
  const owners = { ...HIDDEN, ...Object.fromEntries(FIGURES.map(({ name, presets }) => [name, presets])) };
  const lacking = Object.keys(owners).filter((name) => set[name] !== undefined && !owners[name].includes(to));
  return { preset: to, ...Object.fromEntries(lacking.map((name) => [name, null])) };
}

/** Nothing is written: inherited again. What is no number changes nothing. */
function figureChange({ input, name, unit }) {
  if (input.validity.badInput) return null;
  return { [name]: input.value === '' ? null : Math.round(Number(input.value) * unit) };
}

/** What the server says about settings, as a sentence of its own. */
const sentence = (message) => message.replace(/^retry settings: /, '').replace(/^./, (first) => first.toUpperCase());

const nothing = (set) => Object.fromEntries(Object.keys(set).map((name) => [name, null]));
