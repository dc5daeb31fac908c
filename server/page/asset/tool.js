// A tool call, collapsed, with its input, live output and result.
import { element } from './element.js';
import { Permission } from './permission.js';
import { picture } from './picture.js';
import { oneLine, visible } from './visible.js';
import { took } from './wording.js';

/** Maximum number of characters of live output kept; older ones are dropped. */
const MAX_OUTPUT = 200_000;

/** One call. Its result arrives once, possibly after output. */
export class ToolCard {
  answered = false;
  #state = element('span', { className: 'state' }, 'running');
  #preview = element('span', { className: 'preview' });
  #body = element('div', { className: 'tool-body' });
  #output = null;
  #outputLength = 0;
  #permission = null;
  node;

  constructor({ toolCallId, toolName, input }) {
    Object.assign(this, { toolCallId, input });
    const dot = element('span', { className: 'dot', ariaHidden: 'true' });
    const name = element('span', { className: 'tool-name' }, oneLine(toolName, 80));
    const summary = element('summary', {}, dot, name, this.#preview, this.#state);
    this.node = element('details', { className: 'tool working' }, summary, this.#body);
    if (input !== undefined) this.#input(input);
  }

  #input(input) {
    const text = typeof input === 'string' ? input : JSON.stringify(input, null, 2);
    this.#preview.textContent = visible(preview(input).slice(0, 160));
    this.#section('Input', visible(text));
  }

  output({ data, stream }) {
    this.#output ??= this.#section('Output', '');
    this.#output.append(element('span', { className: stream }, data));
    this.#outputLength += data.length;
    while (this.#outputLength > MAX_OUTPUT && this.#output.childNodes.length > 1) {
      this.#outputLength -= this.#output.firstChild.textContent.length;
      this.#output.firstChild.remove();
    }
    this.#output.scrollTop = this.#output.scrollHeight;
  }

  /** `images`: only from history, as events do not contain them. */
  result({ content, isError, durationMs, images = [], decisions = [], questions = [] }) {
    this.answered = true;
    this.node.classList.remove('working', 'asking');
    this.#permission?.end();
    if (decisions.length + questions.length > 0) this.#decided.kept(decisions, questions);
    this.node.classList.toggle('failed', isError);
    const time = !durationMs ? '' : ` · ${took(durationMs)}`;
    this.#state.textContent = (isError ? 'failed' : 'done') + time;
    this.#section(isError ? 'Error' : 'Result', content);
    if (images.length > 0) this.#body.append(element('div', { className: 'tool-images' }, ...images.map((image) => picture(image))));
  }

  /** The turn ended. */
  end() {
    if (this.answered) return;
    this.node.classList.remove('working', 'asking');
    this.#permission?.end();
    this.#state.textContent = 'no result';
  }

  /** Whether a person is asked. */
  get isAsking() {
    return this.#permission?.isAsking ?? false;
  }

  /** Handles an event about its approval, review or question. */
  permission(event) {
    if (this.answered) return;
    this.#decided.receive(event);
    this.node.classList.toggle('asking', this.isAsking);
    const isRunning = event.verdict === 'allowed' || event.type === 'question-settled';
    this.#state.textContent = STATES[event.type] ?? (isRunning ? 'running' : 'not run');
  }

  /** Removes the call with its approval card. */
  remove() {
    this.#permission?.node.remove();
    this.node.remove();
  }

  get #decided() {
    if (!this.#permission) this.node.after((this.#permission = new Permission()).node);
    return this.#permission;
  }

  #section(title, text) {
    const block = element('pre', { tabIndex: 0 }, text);
    this.#body.append(element('div', { className: 'tool-part' }, title), block);
    return block;
  }
}

const STATES = { 'approval-requested': 'needs your approval', 'question-asked': 'asks you', 'review-started': 'under review' };

/** The input on one line: the value itself if there is only one. */
function preview(input) {
  if (typeof input === 'string') return input;
  const values = Object.values(input ?? {});
  if (values.length === 0) return '';
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : JSON.stringify(input);
}
