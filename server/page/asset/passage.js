// The output of one step: text, reasoning, tool calls and errors, in order.
import { element } from './element.js';
import { Markdown } from './markdown.js';
import { readable } from './readable.js';
import { hasSource } from './source.js';
import { ToolCard } from './tool.js';
import { aftermath, failure } from './wording.js';

/** A part of the transcript to which content is appended. */
export class Passage {
  node = element('div', { className: 'passage', role: 'article', ariaLabel: 'Answer' });
  #open = null; // the piece that the next delta of its kind continues

  text(delta) {
    this.#piece(Answer).push(delta);
  }

  reasoning(delta) {
    this.#piece(Reasoning).push(delta);
  }

  /** A tool call; without `input` if only its result is known. */
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

  /** Closes the open piece. `seq`: of the last piece's chunk, if it is stored. */
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

/** A sentence about the failure, the provider's message, and its complete response, collapsed. */
function errorNode(error) {
  const code = error.code ? ` (${error.code})` : '';
  // A provider's error is usually JSON or HTML around a message; the server's own errors are shown as they are.
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
