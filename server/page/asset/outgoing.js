// Sent texts that the server has not confirmed.
import { said } from './section.js';
import * as transcript from './transcript.js';

const CONFIRMS_QUEUE = new Set(['queue-changed', 'user-message', 'steering']);

export class Outgoing {
  #prompt = null; // begins a turn: { text, images, nodes }
  #queued = ''; // was sent to be queued

  /** Whether a turn has been requested that has not begun. */
  get isPending() {
    return this.#prompt !== null;
  }

  /** Their nodes in the transcript. */
  get nodes() {
    return this.#prompt ? this.#prompt.nodes : [];
  }

  /** The images of the message that will begin a turn. */
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

  /** Takes the text and images that were never confirmed, if any. */
  takeBack() {
    const { images } = this;
    const text = this.#prompt?.text ?? this.#queued;
    this.begun();
    this.#queued = '';
    return { text, images };
  }
}
