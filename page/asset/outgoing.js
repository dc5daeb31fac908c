// The texts that the person sent and the server has not confirmed.
import { said } from './section.js';
import * as transcript from './transcript.js';

const CONFIRMS_QUEUE = new Set(['queue-changed', 'user-message', 'steering']);

export class Outgoing {
  #prompt = null; // begins a turn: { text, images, nodes }
  #queued = ''; // was sent to be queued

  /** Whether a turn is still to begin. */
  get isPending() {
    return this.#prompt !== null;
  }

  /** What is shown of it. */
  get nodes() {
    return this.#prompt ? this.#prompt.nodes : [];
  }

  /** The images of the message that is to begin a turn. */
  get images() {
    return this.#prompt?.images ?? [];
  }

  prompt(text, images = []) {
    this.#prompt = { text, images, nodes: said(text, images, 'pending') };
    this.#prompt.nodes.forEach((node) => transcript.append(node));
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
    this.#prompt?.nodes.forEach((node) => node.remove());
    this.#prompt = null;
  }

  /** The text and images that were never confirmed, if any: they are no longer under way. */
  takeBack() {
    const { images } = this;
    const text = this.#prompt?.text ?? this.#queued;
    this.begun();
    this.#queued = '';
    return { text, images };
  }
}
