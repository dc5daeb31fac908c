// What the model says in one step: text, reasoning, tool calls and errors, in their order.
import { element } from './element.js';
import { Markdown } from './markdown.js';
import { readable } from './readable.js';
import { hasSource } from './source.js';
import { ToolCard } from './tool.js';
import { aftermath, failure } from './wording.js';

/** A part of the transcript that grows at its end. */
export class Passage {
  node = element('div', { className: 'passage', role: 'article', ariaLabel: 'Answer' });
  #open = null; // the piece that the next delta of its kind continues

  text(delta) {
    this.#piece(Answer).push(delta);
  }

  reasoning(delta) {
    this.#piece(Reasoning).push(delta);
  }

  /** A tool call, without `input` when only its result is known. */
  call(call) {
    return this.add(new ToolCard(call));
  }

  error(error) {
    this.add({ node: errorNode(error) });
  }

  add(piece) {
    this.end();
    this.node.append(piece.node);
    return piece;
  }

  flush() {
    this.#open?.flush();
  }

  /** Nothing continues the open piece. `seq`: of the chunk that the last piece is of, where it is stored. */
  end(seq) {
    this.#open?.end();
    this.#open = null;
    const last = this.node.lastElementChild;
    if (seq !== undefined && last && last.dataset.seq === undefined) last.dataset.seq = seq;
  }

  #piece(Kind) {
    if (!(this.#open instanceof Kind)) this.#open = this.add(new Kind());
    return this.#open;
  }
}

class Answer {
  node = element('div', { className: 'answer' });
  #markdown = new Markdown(this.node);

  constructor() {
    hasSource(this.node, () => this.#markdown.source);
  }

  push(delta) {
    this.#markdown.push(delta);
  }

  flush() {
    this.#markdown.flush();
  }

  end() {
    this.#markdown.end();
  }
}

class Reasoning {
  #summary = element('summary', {}, 'Thinking');
  #text = document.createTextNode('');
  #fresh = '';
  node = element(
    'details',
    { className: 'reasoning working' },
    this.#summary,
    element('div', { className: 'thought' }, this.#text),
  );

  push(delta) {
    this.#fresh += delta;
  }

  flush() {
    if (this.#fresh) this.#text.appendData(this.#fresh);
    this.#fresh = '';
  }

  end() {
    this.flush();
    this.#summary.textContent = 'Thoughts';
    this.node.classList.remove('working');
  }
}

/** What happened in a sentence, then the provider's words; all that it sent is folded away. */
function errorNode(error) {
  const code = error.code ? ` (${error.code})` : '';
  // A provider's error is code around words; what the server says itself is to be read as it is.
  const isVerbatim = /^HTTP \d{3}/.test(error.message) || error.message.length > 300;
  const words = isVerbatim ? readable(error.message) : error.message;
  const hasWords = words && !/^[{[<]/.test(words); // else it is code, for nobody to read
  const raw = element(
    'details',
    {},
    element('summary', {}, 'Provider’s message'),
    element('pre', { tabIndex: 0 }, error.message),
  );
  return element(
    'div',
    { className: 'error', role: 'alert' },
    element('p', { className: 'error-title' }, `${failure(error)}${code}`),
    ...(hasWords ? [element('p', {}, words)] : []),
    ...aftermath(error).map((line) => element('p', {}, line)),
    ...(hasWords && words === error.message ? [] : [raw]),
  );
}
