// The texts that the person sent and the server has not confirmed.
import { bubble } from './section.js';
import * as transcript from './transcript.js';

const CONFIRMS_QUEUE = new Set(['queue-changed', 'user-message', 'steering']);

export class Outgoing {
  #prompt = null; // begins a turn: { text, node }
  #queued = ''; // was sent to be queued

  /** Whether a turn is still to begin. */
  get isPending() {
    return this.#prompt !== null;
  }

  /** What is shown of it. */
  get nodes() {
    return this.#prompt ? [this.#prompt.node] : [];
  }

  prompt(text) {
    this.#prompt = { text, node: bubble(text, 'pending') };
    transcript.append(this.#prompt.node);
    transcript.toEnd();
  }

  queue(text) {
    this.#queued = text;
  }

  receive(event) {
    if (CONFIRMS_QUEUE.has(event.type)) this.#queued = '';
  }

  /** The turn has begun. */
  begun() {
    this.#prompt?.node.remove();
    this.#prompt = null;
  }

  /** The text that was never confirmed, if any: it is no longer under way. */
  takeBack() {
    const text = this.#prompt?.text ?? this.#queued;
    this.begun();
    this.#queued = '';
    return text;
  }
}
