// The tools offered to models: their sources, policies, and claims of their servers.
import { endLogin, getTools } from './api.js';
import { confirm } from './ask.js';
import { byId, element } from './element.js';
import { loginButton, openLogin } from './login.js';
import { panel } from './panel.js';
import { Requests } from './requests.js';
import { oneLine, visible } from './visible.js';

const list = byId('tool-sources');
const problem = byId('tools-problem');

/** Interval for refreshing while a server starts, or somebody logs in. */
const AGAIN_MS = 2000;

/** Maximum numbers of characters of a state's reason, and of a description. */
const LONGEST_REASON = 600;
const LONGEST_TEXT = 2000;

export class Tools {
  #timer = 0;
  #requests = new Requests();
  #shown = '';
  /** What is to become of logins that were begun or ended here, by server. */
  #awaited = new Map();

  #panel = panel('tools', () => this.load(), () => clearTimeout(this.#timer));

  get isOpen() {
    return this.#panel.isOpen();
  }

  /** Fetches the tools. What is shown stays if the server cannot be reached. */
  async load() {
    clearTimeout(this.#timer);
    const isNews = this.#requests.begin();
    try {
      const told = await getTools();
      if (!isNews()) return;
      this.#show(told);
      for (const { name, login } of told.sources) if (login === this.#awaited.get(name)) this.#awaited.delete(name);
      const isMoving = told.sources.some(({ name, status }) => status === 'starting' || this.#awaited.has(name));
      if (isMoving && this.isOpen) this.#timer = setTimeout(() => this.load(), AGAIN_MS);
      problem.textContent = '';
    } catch (error) {
      problem.textContent = this.isOpen ? `Not up to date: ${error.message}` : '';
    }
  }

  #show(told) {
    const { tools, sources } = told;
    this.#panel.button.hidden = tools.length === 0 && sources.length === 0;
    // Expanded items stay expanded if nothing changes.
    const text = JSON.stringify(told);
    if (text === this.#shown) return;
    this.#shown = text;
    const own = tools.length > 0 ? [group('Built in', null, tools)] : [];
    list.replaceChildren(...own, ...sources.map((source) => group(source.name, source, source.tools, this.#login(source))));
  }

  /** The buttons for the login at a server, if it has to do with one. */
  #login({ name, login }) {
    if (login === 'needed') return [loginButton(name, '', (place) => this.#begin(name, place))];
    return login === 'done' ? [logoutButton(name, () => this.#end(name))] : [];
  }

  async #begin(name, place) {
    if (!(await openLogin(name, place))) return;
    this.#awaited.set(name, 'done');
    this.load();
  }

  async #end(name) {
    const sure = await confirm({ title: `Log out at ${name}?`, text: 'Its token is deleted here. Its tools cannot be called until somebody logs in again.', action: 'Log out', keep: 'Stay' });
    if (!sure) return;
    try {
      await endLogin(name);
      this.#awaited.set(name, 'needed');
    } catch (error) {
      problem.textContent = error.message;
    }
    // The question has closed it.
    byId('tools').showPopover();
  }
}

/** The tools of one server; without a `source`, the built-in ones. */
function group(title, source, tools, buttons = []) {
  const name = element('h3', {}, element('span', { className: 'name' }, oneLine(title, 60)));
  const parts = [name];
  if (source) {
    const { status, message, login } = source;
    const isLocked = status === 'down' && login === 'needed';
    const state = isLocked ? 'needs a login' : (STATES[status] ?? oneLine(status, 40));
    name.append(element('span', { className: `state ${STATES[status] ? status : ''}` }, state));
    if (message && !isLocked) parts.push(element('p', { className: 'reason' }, oneLine(message, LONGEST_REASON)));
    parts.push(...buttons);
  }
  if (tools.length > 0) parts.push(element('ul', {}, ...tools.map((tool) => row(tool, source))));
  else parts.push(element('p', { className: 'hint' }, 'No tools'));
  return element('section', { className: 'tool-source', ariaLabel: oneLine(title, 60) }, ...parts);
}

function logoutButton(name, press) {
  const made = element('button', { type: 'button', className: 'button', ariaLabel: `Log out at ${name}` }, 'Log out');
  made.addEventListener('click', press);
  return element('p', { className: 'login' }, made);
}

function row({ name, description, policy, annotations = {} }, source) {
  const prefix = source ? `${source.name}__` : '';
  const own = name.startsWith(prefix) ? name.slice(prefix.length) : name;
  const shown = element('span', { className: 'name', title: visible(name) }, visible(own));
  const summary = element('summary', {}, shown, element('span', { className: `policy ${POLICIES[policy] ? policy : ''}` }, POLICIES[policy] ?? oneLine(policy, 40)));
  const about = element('p', { className: 'about' }, visible(description.slice(0, LONGEST_TEXT)) || 'No description');
  const parts = [summary, about];
  const claimed = claims(annotations);
  if (claimed) parts.push(element('p', { className: 'hint' }, `The server claims: ${claimed}. Not checked.`));
  return element('li', {}, element('details', {}, ...parts));
}

/** Claims that matter for approvals. Most concern tools that change something. */
function claims({ readOnly, destructive, idempotent, openWorld }) {
  const words = [
    [readOnly === true, 'only reads'],
    [readOnly !== true && destructive === true, 'may destroy data'],
    [readOnly !== true && destructive === false, 'only adds'],
    [readOnly !== true && idempotent === true, 'can be repeated safely'],
    [openWorld === true, 'reaches beyond its server'],
  ];
  return words.filter(([holds]) => holds).map(([, word]) => word).join(', ');
}

const STATES = { up: 'running', starting: 'starting…', down: 'not running' };
const POLICIES = { allow: 'runs', ask: 'asks you', review: 'is reviewed', deny: 'denied' };
