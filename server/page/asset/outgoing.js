// Sent texts that the server has not confirmed.
import { said } from './section.js';
import * as transcript from './transcript.js';

/** Texts, one after the other. */
export const joined = (...texts) => texts.filter(Boolean).join('\n\n');

/** Whether the server has a message that was sent to be queued. What a queued message became says its text alone. */
const has = (event, messageId, text) =>
  event.type === 'queue-changed'
    ? event.queue.some((message) => message.messageId === messageId)
    : ['user-message', 'steering'].includes(event.type) && event.text === text;

export class Outgoing {
  #prompt = null; // begins a turn: { text, images, nodes }
  #queued = new Map(); // texts that were sent to be queued, by message id

  /** Whether a turn has been requested that has not begun. */
  get isPending() {
    return this.#prompt !== null;
  }

  get isUnconfirmed() {
    return this.isPending || this.#queued.size > 0;
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

  queue(messageId, text) {
    this.#queued.set(messageId, text);
  }

  receive(event) {
    for (const [messageId, text] of this.#queued) if (has(event, messageId, text)) this.#queued.delete(messageId);
  }

  /** The turn has begun. */
  begun() {
    this.#prompt?.nodes.forEach((node) => node.remove());
    this.#prompt = null;
  }

  /** Takes back a refused message: the queued one of this id; without one, that which was to begin a turn. */
  refused(messageId) {
    const text = messageId === undefined ? this.#prompt?.text : this.#queued.get(messageId);
    const images = messageId === undefined ? this.images : [];
    if (messageId === undefined) this.begun();
    this.#queued.delete(messageId);
    return { text, images };
  }

  /** Takes back all texts and images that were never confirmed, if any. */
  takeBack() {
    const queued = [...this.#queued.values()];
    this.#queued.clear();
    const { text, images } = this.refused();
    return { text: joined(text, ...queued), images };
  }
}
