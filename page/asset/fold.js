// Folds what a later version of the conversation replaced. Its pieces name their chunk in `data-seq`; what has no chunk,
// such as a note, goes with the piece before it.
import { element } from './element.js';

/** What one version replaced: the chunks from `from` up to `before`. */
export class Replaced {
  #ranges = [];

  add(from, before) {
    this.#ranges.push({ from, before });
  }

  has(seq) {
    return this.#ranges.some(({ from, before }) => from <= seq && seq < before);
  }

  /** Folds what was replaced of these sections, given in order. */
  fold(sections) {
    let open = null; // the fold that further turns go into
    for (const { node } of sections) {
      const first = node.querySelector('[data-seq]');
      if (first ? this.has(Number(first.dataset.seq)) : this.#isBetween(node)) {
        if (open && node.querySelector(':scope > .user')) open.append(node);
        else if (!isFolded(node)) open = wrap(node, [...node.children]);
      } else {
        const rest = this.#rest(node);
        open = rest.length > 0 ? wrap(node, rest) : null;
      }
    }
  }

  /** Whether a turn that ended before its first chunk was begun before what replaced its neighbours. */
  #isBetween({ dataset }) {
    return dataset.firstSeq !== undefined && this.has(Number(dataset.firstSeq) - 1);
  }

  /** The replaced end of a section that begins with what still stands. */
  #rest(section) {
    const parts = [...section.children];
    const isReplaced = (piece) => piece.dataset.seq !== undefined && this.has(Number(piece.dataset.seq));
    for (const [at, part] of parts.entries()) {
      if (isReplaced(part)) return parts.slice(at);
      if (!part.classList.contains('passage')) continue;
      const pieces = [...part.children];
      const cut = pieces.findIndex(isReplaced);
      if (cut < 0) continue;
      const moved = cut === 0 ? part : element('div', { className: 'passage' }, ...pieces.slice(cut));
      return [moved, ...parts.slice(at + 1)];
    }
    return [];
  }
}

const isFolded = (section) => section.firstElementChild?.classList.contains('replaced') ?? true;

/** Puts these parts at the end of a section into a fold. */
export function wrap(section, parts) {
  const fold = element('details', { className: 'replaced' }, element('summary', {}, 'Earlier version'), ...parts);
  section.append(fold);
  return fold;
}
