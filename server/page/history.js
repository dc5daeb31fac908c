// Stored chunks as transcript.
import { element } from './element.js';
import { Passage } from './passage.js';
import { bubble } from './turn.js';

/** The stored part of the transcript, in one or more windows, older ones put before newer ones. */
export class History {
  node = element('div', { className: 'history' });
  oldest = Infinity; // seq of the first chunk that is shown
  last = null; // the last chunk that is shown
  lastPrompt = null; // the text of the last user message
  #orphans = new Map(); // results whose call is in an older window: { card, chunk }, by key

  /** Puts a window of chunks, ascending by `seq`, before those already shown. */
  prepend(chunks) {
    if (chunks.length === 0) return;
    const pieces = new Pieces();
    for (const each of chunks) pieces.add(each);
    for (const [key, card] of pieces.calls) {
      const late = this.#orphans.get(key);
      late?.card.node.remove();
      if (late) card.result(late.chunk);
      else card.end();
    }
    this.#orphans = pieces.orphans;
    this.node.prepend(pieces.nodes);
    this.oldest = chunks[0].seq;
    this.last ??= chunks.at(-1);
    this.lastPrompt ??= chunks.findLast(({ role, chunk }) => role === 'user' && chunk.type === 'text')?.chunk.text;
  }

  /** Whether the last turn got no answer. */
  get unanswered() {
    return this.last !== null && (this.last.chunk.type === 'error' || this.last.role === 'user');
  }
}

/** The nodes of one window. */
class Pieces {
  nodes = document.createDocumentFragment();
  calls = new Map(); // cards that have no result yet, by key
  orphans = new Map();
  #passage = null; // what the model says, until the person speaks

  add({ role, chunk }) {
    const key = `${chunk.stepId ?? ''} ${chunk.toolCallId ?? ''}`;
    switch (chunk.type) {
      case 'text':
        if (role === 'user') this.#fromPerson(bubble(chunk.text));
        else this.#model.text(chunk.text);
        break;
      case 'thinking': // without words where the provider hides them
        if (chunk.text) this.#model.reasoning(chunk.text);
        break;
      case 'tool-call':
        this.calls.set(key, this.#model.call(chunk));
        break;
      case 'tool-result':
        this.#result(key, chunk);
        break;
      case 'error':
        this.#model.error(chunk);
        break;
      case 'image':
        this.#fromPerson(bubble('Image', 'attachment'));
        break;
      default: // system: for the model
    }
    this.#passage?.end(); // each chunk is a text of its own
  }

  get #model() {
    if (!this.#passage) this.nodes.append((this.#passage = new Passage()).node);
    return this.#passage;
  }

  #fromPerson(node) {
    this.nodes.append(node);
    this.#passage = null;
  }

  #result(key, chunk) {
    let card = this.calls.get(key);
    if (!card) {
      card = this.#model.call({ toolCallId: chunk.toolCallId, toolName: chunk.toolName });
      this.orphans.set(key, { card, chunk });
    }
    card.result(chunk);
    this.calls.delete(key);
  }
}
