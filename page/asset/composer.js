// The message field, the model picker, and the queued messages.
import { getModels } from './api.js';
import { setModels } from './choice.js';
import { byId, element } from './element.js';
import { hasKeyboard, passFocus } from './focus.js';
import { Images } from './images.js';

const MODEL_KEY = 'everturn.model';
const field = byId('prompt');
const send = byId('send');
const stop = byId('stop');
const picker = byId('model');

export class Composer {
  images = new Images();

  /**
   * `onSubmit(text, images)` returns whether that was sent; `onModel(model)`: the person chose one;
   * `onText(text)`: what is written changed.
   */
  constructor({ onSubmit, onStop, onModel, onText }) {
    this.onText = onText;
    byId('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      const text = field.value.trim();
      const images = this.images.all;
      if ((!text && images.length === 0) || !onSubmit(text, images)) return;
      this.text = '';
      this.images.all = [];
    });
    field.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing || !hasKeyboard()) return;
      event.preventDefault();
      byId('composer').requestSubmit();
    });
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
   * What can be done: `isRunning`: a turn runs, it can be stopped, and messages are queued; `isStopping`: it is asked to
   * stop; `isGone`: there is no such conversation, and nothing can be sent to it.
   */
  show({ isRunning, isStopping, isGone }) {
    if (!isRunning || isStopping) passFocus(stop);
    stop.hidden = !isRunning;
    stop.disabled = isStopping;
    stop.lastChild.data = isStopping ? 'Stopping…' : 'Stop';
    field.disabled = send.disabled = isGone;
    const label = isRunning ? 'Queue' : 'Send';
    const hint = isRunning ? 'Type your next message; it is sent when this answer ends' : 'Message';
    if (send.textContent !== label) send.textContent = label;
    if (field.placeholder !== hint) field.placeholder = hint;
  }

  /** Shows a model as the one chosen, as far as there is such a one; without one, the last that was chosen anywhere. */
  pick(model) {
    const names = [...picker.options].map(({ value }) => value);
    const wanted = [model, localStorage.getItem(MODEL_KEY)].find((name) => names.includes(name));
    picker.value = wanted ?? names[0] ?? '';
  }

  /** A model was chosen elsewhere, and the conversation stays with it; not where a route goes to one of its targets. */
  follow(model) {
    if (picker.value.startsWith('route/') && !model.startsWith('route/')) return;
    picker.value = model;
  }

  /** `byHand`: the person asked for it. */
  focus(byHand = false) {
    if (byHand || hasKeyboard()) field.focus({ preventScroll: true });
  }

  async loadModels() {
    const { models } = await getModels();
    setModels(models);
    picker.replaceChildren(...models.map((name) => element('option', { value: name }, name)));
    this.pick();
    picker.disabled = models.length < 2;
  }
}

function fit() {
  field.style.height = 'auto';
  field.style.height = `${field.scrollHeight}px`;
}

/** The messages that are sent with the next tool result or as the next turn. */
export class Queue {
  #list = byId('queue');

  /** `onCancel(messageId)` */
  constructor({ onCancel }) {
    this.onCancel = onCancel;
  }

  receive(event) {
    if (event.type === 'user-message') this.hide(); // what still waits is told again by the new turn
    if (event.type !== 'queue-changed') return;
    this.#list.replaceChildren(...event.queue.map((message) => this.#item(message)));
    this.#list.hidden = event.queue.length === 0;
  }

  hide() {
    this.#list.replaceChildren();
    this.#list.hidden = true;
  }

  #item({ messageId, text }) {
    const cancel = element('button', { type: 'button', className: 'quiet icon', ariaLabel: 'Cancel this message' }, '×');
    cancel.addEventListener('click', () => this.onCancel(messageId));
    const mark = element('span', { className: 'mark' }, 'Queued');
    return element('li', {}, mark, element('span', { className: 'text' }, text), cancel);
  }
}
