// Folds superseded parts of a conversation. Pieces name their chunk in `data-seq`; pieces without one, such as notes,
// belong to the piece before them.
import { element } from './element.js';

/** The chunks replaced by one version: from `from` up to, but not including, `before`. */
export class Replaced {
  #ranges = [];

  add(from, before) {
    this.#ranges.push({ from, before });
  }

  has(seq) {
    return this.#ranges.some(({ from, before }) => from <= seq && seq < before);
  }

  /** Folds the superseded parts of these sections, given in order. */
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

  /** Whether a turn that ended before its first chunk began before the version that superseded its neighbours. */
  #isBetween({ dataset }) {
    return dataset.firstSeq !== undefined && this.has(Number(dataset.firstSeq) - 1);
  }

  /** The superseded end of a section whose start still applies. */
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

/** Moves these parts into a fold at the end of a section. */
export function wrap(section, parts) {
  const fold = element('details', { className: 'replaced' }, element('summary', {}, 'Earlier version'), ...parts);
  section.append(fold);
  return fold;
}
