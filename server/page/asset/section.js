// One turn, live or from history: the user's message, the model's output, and how it ended.
import { attemptsOf } from './attempts.js';
import { element } from './element.js';
import { parts } from './files.js';
import { wrap } from './fold.js';
import { attachments } from './picture.js';
import { answerOffers, editOffer } from './revise.js';
import { copyOffer } from './source.js';
import { ending, figures } from './wording.js';

/** A user message in the transcript. `seq`: of its chunk, as soon as it is known. */
export function bubble(text, className = '', seq) {
  const node = element('div', { className: `user ${className}`.trim(), role: 'article', ariaLabel: 'You' });
  node.append(element('div', { className: 'bubble' }, ...parts(text)));
  if (className === 'steering') node.append(element('p', { className: 'joined' }, 'Joined this answer'));
  if (className === '') node.append(element('div', { className: 'beside' }, editOffer(text), copyOffer(() => text)));
  if (seq !== undefined) node.dataset.seq = seq;
  return node;
}

/** A user message with its images. */
export function said(text, images, className = '') {
  const nodes = text || images.length === 0 ? [bubble(text, className)] : [];
  if (images.length > 0) nodes.push(attachments(images, className));
  return nodes;
}

export class Section {
  node = element('section', { className: 'turn' });
  #foot = element('div', { className: 'foot' });
  #isReplaced = false;

  constructor() {
    this.node.append(this.#foot, answerOffers());
  }

  append(node) {
    this.#foot.before(node);
  }

  note(text) {
    this.append(element('p', { className: 'note' }, text));
  }

  /** The model is working: shows a pulsing dot. */
  begin() {
    this.node.ariaBusy = 'true';
    this.#foot.classList.add('working');
    this.#foot.append(element('span', { className: 'pulse', ariaHidden: 'true' }));
  }

  /** Whether the turn waits; the dot does not pulse then. */
  rest(isWaiting) {
    this.#foot.classList.toggle('resting', isWaiting);
  }

  /** Shows why the turn ended, if that needs an explanation. */
  ended(reason) {
    const why = ending(reason);
    if (why) this.note(why);
  }

  /** The turn ended: shows its metrics. */
  seal(facts) {
    this.node.ariaBusy = 'false';
    this.#foot.classList.remove('working', 'resting');
    this.#foot.textContent = figures(facts);
    this.#foot.after(...attemptsOf(facts));
  }

  /** Folds everything after the last message, tool result or summary, including the end: a retry replaced it. */
  replace() {
    if (this.#isReplaced) return;
    this.#isReplaced = true;
    const folded = looseEnd(this.node);
    if (folded.length === 0) return;
    wrap(this.node, folded);
  }
}

function looseEnd(section) {
  const folded = [];
  for (const part of [...section.children].reverse()) {
    if (part.classList.contains('user') || part.classList.contains('compaction')) break;
    if (part.textContent === '') continue;
    const card = part.classList.contains('passage') ? [...part.children].findLastIndex(isCard) : -1;
    if (card < 0) {
      folded.unshift(part);
      continue;
    }
    const pieces = [...part.children].slice(card + 1);
    if (pieces.length > 0) folded.unshift(element('div', { className: 'passage' }, ...pieces));
    break;
  }
  return folded;
}

const isCard = (piece) => ['tool', 'permission'].some((kind) => piece.classList.contains(kind));
