// The message field, the model select, and the queued messages.
import { getModels } from './api.js';
import { setModels } from './choice.js';
import { byId, element } from './element.js';
import { Files, tooLong } from './files.js';
import { hasKeyboard, passFocus, sendsOnEnter } from './focus.js';
import { Images } from './images.js';
import { Requests } from './requests.js';
import { toast } from './toast.js';

const MODEL_KEY = 'everturn.model';
const DEMO = 'demo/flaky';
const field = byId('prompt');
const send = byId('send');
const stop = byId('stop');
const picker = byId('model');
const unknown = element('option', { value: '', hidden: true }, 'Model as before');

export class Composer {
  files = new Files();
  images = new Images({ onText: (...what) => this.files.add(...what) });
  #requests = new Requests();

  /**
   * `onSubmit(text, images)` returns whether the message was sent; `onModel(model)`: the user chose a model;
   * `onText(text)`: the text changed.
   */
  constructor({ onSubmit, onStop, onModel, onText }) {
    this.onText = onText;
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      const { reading } = this.images;
      if (reading) return void reading.then((isWanted) => isWanted && this.submit());
      const text = this.files.with(field.value.trim());
      const images = this.images.all;
      const problem = tooLong(text);
      if (problem) return toast(problem, 'message');
      if ((!text && images.length === 0) || !onSubmit(text, images)) return;
      this.text = '';
      this.images.all = [];
      this.files.clear();
    });
    sendsOnEnter(field);
    field.addEventListener('input', () => {
      fit();
      onText(field.value);
    });
    stop.addEventListener('click', onStop);
    picker.addEventListener('change', () => {
      localStorage.setItem(MODEL_KEY, picker.value);
      onModel(picker.value);
    });
  }

  get text() {
    return field.value;
  }

  set text(text) {
    field.value = text;
    fit();
    this.onText(text);
  }

  get model() {
    return picker.value || undefined;
  }

  /**
   * Sets what is possible. `isRunning`: a turn runs; it can be stopped, and messages are queued. `isStopping`: it was
   * asked to stop. `isGone`: the conversation does not exist, and nothing can be sent.
   */
  show({ isRunning, isStopping, isGone }) {
    if (!isRunning || isStopping) passFocus(stop);
    stop.hidden = !isRunning;
    stop.disabled = isStopping;
    stop.lastChild.data = isStopping ? 'Stopping…' : 'Stop';
    field.disabled = send.disabled = isGone;
    const label = isRunning ? 'Queue' : 'Send';
    const hint = isRunning ? 'Queue a message' : 'Message';
    if (send.textContent !== label) send.textContent = label;
    if (field.placeholder !== hint) field.placeholder = hint;
  }

  get hasModels() {
    return picker.options.length > 0;
  }

  /** Selects a model if it exists; without one, the model that was last chosen anywhere. */
  pick(model) {
    unknown.remove();
    const names = [...picker.options].map(({ value }) => value);
    const wanted = [model, localStorage.getItem(MODEL_KEY)].find((name) => names.includes(name));
    picker.value = wanted ?? names[0] ?? '';
  }

  /** Selects none: the conversation keeps its own, which is not known here. */
  pickNone() {
    picker.prepend(unknown);
    picker.value = '';
  }

  /**
   * A model was chosen elsewhere, and the conversation keeps it, unless a route merely switched to one of its targets.
   */
  follow(model) {
    if (picker.value.startsWith('route/') && !model.startsWith('route/')) return;
    picker.value = model;
  }

  /** Sends the message in the field. */
  submit() {
    byId('composer').requestSubmit();
  }

  /** `byHand`: whether the user chose it. */
  focus(byHand = false) {
    if (byHand || hasKeyboard()) field.focus({ preventScroll: true });
  }

  /** Whether there is nothing but the built-in model. */
  get hasOnlyDemo() {
    return picker.options.length === 1 && picker.value === DEMO;
  }

  /** Fetches the models, and selects this one if there is a choice; without one, what is selected stays. */
  async loadModels(wanted) {
    const isNews = this.#requests.begin();
    const { models } = await getModels();
    if (!isNews()) return;
    const chosen = wanted ?? this.model;
    setModels(models);
    const isUnknown = unknown.selected && unknown.isConnected && !wanted;
    unknown.remove();
    const isSame = models.length === picker.options.length && models.every((name, at) => picker.options[at].value === name);
    if (!isSame) picker.replaceChildren(...models.map((name) => element('option', { value: name }, name)));
    if (isUnknown) this.pickNone();
    else this.pick(chosen);
    picker.disabled = models.length < 2;
  }
}

function fit() {
  field.style.height = 'auto';
  field.style.height = `${field.scrollHeight}px`;
}

/** The messages to be sent with the next tool result or as the next turn. */
export class Queue {
  #list = byId('queue');
  #hint = byId('queue-hint');

  /** `onCancel(messageId)` */
  constructor({ onCancel }) {
    this.onCancel = onCancel;
  }

  receive(event) {
    if (event.type === 'user-message') this.hide(); // what still waits is told again by the new turn
    if (event.type !== 'queue-changed') return;
    this.#list.replaceChildren(...event.queue.map((message) => this.#item(message)));
    this.#list.hidden = this.#hint.hidden = event.queue.length === 0;
  }

  hide() {
    this.#list.replaceChildren();
    this.#list.hidden = this.#hint.hidden = true;
  }

  #item({ messageId, text }) {
    const cancel = element('button', { type: 'button', className: 'quiet icon', ariaLabel: 'Cancel this message' }, '×');
    cancel.addEventListener('click', () => this.onCancel(messageId));
    const mark = element('span', { className: 'mark' }, 'Queued');
    return element('li', {}, mark, element('span', { className: 'text' }, text), cancel);
  }
}
