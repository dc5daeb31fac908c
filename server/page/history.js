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
  #orphans = new Map(); // cards of results whose call is in an older window, by key

  /** Puts a window of chunks, ascending by `seq`, before those already shown. */
  prepend(chunks) {
    if (chunks.length === 0) return;
    const open = new Map(); // cards without result, by key
    const orphans = new Map();
    const nodes = document.createDocumentFragment();
    let passage = null;
    const say = () => {
      if (!passage) nodes.append((passage = new Passage()).node);
      return passage;
    };
    for (const { role, chunk } of chunks) {
      const key = `${chunk.stepId ?? ''} ${chunk.toolCallId ?? ''}`;
      switch (chunk.type) {
        case 'text':
          if (role === 'user') {
            nodes.append(bubble(chunk.text));
            passage = null;
          } else {
            say().end(); // each chunk is a text of its own
            say().text(chunk.text);
          }
          break;
        case 'thinking':
          say().end();
          say().reasoning(chunk.text);
          break;
        case 'tool-call':
          open.set(key, say().call(chunk));
          break;
        case 'tool-result': {
          const card = open.get(key);
          if (card) card.result(chunk);
          else orphans.set(key, orphan(say(), chunk));
          open.delete(key);
          break;
        }
        case 'error':
          say().error(chunk);
          break;
        case 'image':
          nodes.append(bubble('Image', 'attachment'));
          passage = null;
          break;
        default: // system: for the model
      }
      passage?.end();
    }
    for (const [key, card] of open) {
      const late = this.#orphans.get(key);
      if (!late) card.end();
      else {
        card.result(late.chunk);
        late.card.node.remove();
      }
    }
    this.#orphans = orphans;
    this.node.prepend(nodes);
    this.oldest = chunks[0].seq;
    this.last ??= chunks.at(-1);
    this.lastPrompt ??= chunks.findLast(({ role, chunk }) => role === 'user' && chunk.type === 'text')?.chunk.text;
  }

  /** Whether the last turn got no answer. */
  get unanswered() {
    return this.last !== null && (this.last.chunk.type === 'error' || this.last.role === 'user');
  }
}

function orphan(passage, chunk) {
  const card = passage.call({ toolCallId: chunk.toolCallId, toolName: chunk.toolName });
  card.result(chunk);
  return { card, chunk };
}
