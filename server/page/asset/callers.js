// The dialog in which an administrator makes, limits, replaces and revokes tokens of callers. A token is shown once, and not kept.
import { getCallers, getUsage, limitCaller, makeCaller, revokeToken, rotateToken } from './api.js';
import { confirm } from './ask.js';
import { copy } from './copy.js';
import { byId, element } from './element.js';
import { oneLine } from './visible.js';

const dialog = byId('callers');
const form = byId('caller-form');
const name = byId('caller-name');
const scope = byId('caller-scope');
const until = byId('caller-until');
const priority = byId('caller-priority');
const models = byId('caller-models');
const problem = byId('callers-problem');
const made = byId('caller-token');

/** The fields of limits: what the server calls each, and how the list tells it. */
const LIMITS = [
  ['requestsPerMinute', '# requests per minute'],
  ['tokensPerMinute', '# tokens per minute'],
  ['tokensPerDay', '# tokens per day'],
  ['parallel', '# calls at once'],
  ['moneyPerDay', 'a cost of # per day'],
];
const SCOPES = { chat: 'conversations', calls: 'calls', proxy: 'proxy', admin: 'administrator' };
const WHOLE = new Intl.NumberFormat('en');

/** Maximum number of characters of an error. */
const LONGEST = 600;

const field = (key) => byId(`caller-${key}`);

export class Callers {
  /** The caller whose limits are being changed; none = a new one is being made. */
  #changed;

  constructor() {
    byId('callers-button').addEventListener('click', () => this.open());
    byId('callers-close').addEventListener('click', () => dialog.close());
    byId('caller-cancel').addEventListener('click', () => {
      const of = this.#changed;
      this.#edit();
      focusOn(of);
    });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#save();
    });
    dialog.addEventListener('close', () => show());
  }

  async open() {
    dialog.showModal();
    this.#edit();
    await this.#load();
    focusOn();
  }

  async #load() {
    const today = new Date().toISOString().slice(0, 10);
    try {
      const [{ callers }, { rows }] = await Promise.all([getCallers(), getUsage('caller', today)]);
      const used = new Map(rows.map((row) => [row.caller, row]));
      byId('caller-list').replaceChildren(...callers.map((caller) => this.#row(caller, used.get(caller.name))));
      form.hidden = false;
      problem.textContent = '';
    } catch (error) {
      form.hidden = true;
      fail(error, error.status === 403 ? 'Callers can be changed ' : '');
    }
  }

  #row(caller, used) {
    const until = caller.until ? `until ${caller.until.replace(/T.*/, '')}` : '';
    const facts = [caller.scopes.map((each) => SCOPES[each] ?? each).join(' and '), caller.status, until].filter(Boolean).join(' · ');
    const parts = [['name', caller.name], ['about', facts], ['about', limits(caller)], ['about', spent(caller, used)]];
    if (caller.configured) parts.push(['about', 'From the configuration']);
    const about = parts.filter(([, text]) => text).map(([className, text]) => element('span', { className }, oneLine(text, LONGEST)));
    if (caller.configured) return element('li', {}, element('div', {}, ...about));
    const button = (label, act) => {
      const made = element('button', { type: 'button', className: 'button', ariaLabel: `${label}: ${caller.name}` }, label);
      made.dataset.caller = caller.name;
      made.addEventListener('click', act);
      return made;
    };
    const isValid = caller.status === 'valid';
    const buttons = [button('Limits', () => this.#edit(caller)), button('New token', () => this.#rotate(caller))];
    if (caller.scopes.includes('admin')) buttons.shift();
    if (isValid) buttons.push(button('Revoke', () => this.#revoke(caller)));
    return element('li', {}, element('div', {}, ...about), element('div', { className: 'row' }, ...buttons));
  }

  /** Shows the form for a new caller, or for the limits of this one. */
  #edit(caller) {
    this.#changed = caller?.name;
    form.reset();
    byId('caller-title').textContent = caller ? `Limits of ${caller.name}` : 'Make a token';
    byId('caller-save').textContent = caller ? 'Save limits' : 'Make a token';
    byId('caller-cancel').hidden = !caller;
    byId('caller-new').hidden = Boolean(caller);
    name.disabled = Boolean(caller);
    for (const [key] of LIMITS) field(key).value = caller?.[key] ?? '';
    models.value = caller?.models?.join(' ') ?? '';
    priority.value = caller?.priority ?? 'interactive';
    byId('caller-more').open = Boolean(caller);
    if (caller) field(LIMITS[0][0]).focus();
  }

  async #save() {
    const given = {};
    for (const [key] of LIMITS) if (field(key).value !== '') given[key] = Number(field(key).value);
    const patterns = models.value.split(/[\s,]+/).filter(Boolean);
    if (patterns.length > 0) given.models = patterns;
    if (priority.value !== 'interactive') given.priority = priority.value;
    const changed = this.#changed;
    await this.#does(async () => {
      if (changed) {
        await limitCaller(changed, given);
      } else {
        const wanted = { name: name.value.trim(), scopes: scope.value.split(' '), ...given };
        show(await makeCaller(until.value ? { ...wanted, until: until.value } : wanted));
      }
      this.#edit();
    }, changed);
  }

  async #rotate({ name }) {
    const sure = await confirm({ title: `New token for ${name}?`, text: 'Its present token is refused from then on, and its connections end.', action: 'Make a new token', keep: 'Keep' });
    if (sure) await this.#does(async () => show(await rotateToken(name)));
  }

  async #revoke({ name }) {
    const sure = await confirm({ title: `Revoke the token of ${name}?`, text: 'It stops working. The caller’s data is kept, and turns that it began continue.', action: 'Revoke', keep: 'Keep' });
    if (sure) await this.#does(() => revokeToken(name), name);
  }

  /** Does something, and shows the list as it is then, or why it was not done. If it was about a caller, the focus goes back there. */
  async #does(act, about) {
    if (form.ariaBusy === 'true') return;
    form.ariaBusy = 'true';
    try {
      await act();
      await this.#load();
      if (about) focusOn(about);
    } catch (error) {
      fail(error);
      problem.scrollIntoView({ block: 'nearest' });
    }
    form.ariaBusy = 'false';
  }
}

function fail(error, before = '') {
  problem.textContent = `${before}${error.message}`.slice(0, LONGEST);
}

/** Focuses the first button of this caller; without one, of the list; else the field for a new name. */
function focusOn(caller) {
  const buttons = [...byId('caller-list').querySelectorAll('button')];
  const first = buttons.find((button) => caller === undefined || button.dataset.caller === caller);
  (first ?? (form.hidden ? byId('callers-close') : name)).focus();
}

function limits(caller) {
  if (caller.scopes.includes('admin')) return '';
  const known = LIMITS.filter(([key]) => caller[key] !== undefined).map(([key, words]) => words.replace('#', WHOLE.format(caller[key])));
  if (caller.priority === 'background') known.push('in the background');
  if (caller.models) known.push(`only ${caller.models.join(' ')}`);
  return known.length > 0 ? `Limits: ${known.join(', ')}` : 'No limits';
}

function spent(caller, used) {
  if (!used) return caller.status === 'valid' ? 'Today: nothing' : '';
  const cost = used.cost === undefined ? '' : `, cost ${used.cost.toFixed(used.cost < 0.1 ? 4 : 2)}`;
  return `Today: ${WHOLE.format(used.requests)} requests, ${WHOLE.format(used.inputTokens + used.outputTokens)} tokens${cost}`;
}

/** Shows a token that was made; without one, forgets it. */
function show({ token, caller } = {}) {
  made.hidden = !token;
  if (!token) return made.replaceChildren();
  const button = element('button', { type: 'button', className: 'button' }, 'Copy');
  button.addEventListener('click', async () => (button.textContent = (await copy(token)) ? 'Copied' : 'Select it and copy it'));
  made.replaceChildren(element('p', {}, `The token of ${caller.name}, which is shown only now:`), element('code', {}, token), button);
  made.focus();
}
