// Shows stored chunks in the transcript.
import { element } from './element.js';
import { Replaced } from './fold.js';
import { reportCard } from './report.js';
import { Stored } from './stored.js';

/** Why a turn ended, if it can be repeated. */
const UNFINISHED = ['error', 'aborted'];

/** The stored part of the transcript, in one or more windows. Older windows are put before newer ones. */
export class History {
  node = element('div', { className: 'history' });
  oldest = Infinity; // seq of the first chunk that is shown
  last = null; // the last chunk that is shown
  lastPrompt = null; // the text of the last user message
  #lastTurn = null; // what is known of the last turn
  #newest = null; // the section of the last turn
  #replacesOlder = false; // the first section that is shown tries the one before it again
  #shown = new Set(); // ids of turns
  #sections = []; // in order
  #replaced = new Replaced();
  #orphans = new Map(); // results whose call is in an older window: { card, chunk }, by key
  #reports = new Map(); // of such calls: { node, finalReport }, by key

  /**
   * Adds a window of chunks, ascending by `seq`, before those already shown. `turns`: known information about their
   * turns.
   */
  prepend({ chunks, turns = [] }) {
    const isFirst = this.last === null;
    const stored = new Stored(turns, this.#shown);
    for (const each of chunks) stored.add(each);
    stored.finish();
    for (const [key, card] of stored.calls) {
      const late = this.#orphans.get(key);
      late?.card.remove();
      if (late) card.result(late.chunk);
      else card.end();
      const report = this.#reports.get(key);
      report?.node.replaceWith(reportCard({ report: card.input, ...report.finalReport }));
    }
    const { sections } = stored;
    if (sections.length > 0) {
      if (this.#replacesOlder) sections.at(-1).replace();
      this.#replacesOlder = stored.replacesOlder;
      this.#newest ??= sections.at(-1);
    }
    this.node.prepend(...sections.map(({ node }) => node));
    this.#sections.unshift(...sections);
    for (const { from, before } of stored.replaced) this.#replaced.add(from, before);
    this.#replaced.fold(sections);
    if (isFirst) this.#lastTurn = turns.at(-1) ?? null;
    if (chunks.length === 0) return;
    this.#orphans = stored.orphans;
    this.#reports = stored.reports;
    this.oldest = chunks[0].seq;
    this.last ??= chunks.at(-1);
    this.lastPrompt ??= chunks.findLast(({ role, chunk }) => role === 'user' && chunk.type === 'text')?.chunk.text;
  }

  /** A running turn supersedes all chunks from this one on. */
  fold(from) {
    this.#replaced.add(from, Infinity);
    this.#replaced.fold(this.#sections);
  }

  /** The id of the last known turn. */
  get lastTurn() {
    return this.#lastTurn?.turnId;
  }

  /** A running turn repeats the last one of these. */
  replace() {
    this.#newest?.replace();
  }

  /** The id of the last turn, if it can be repeated. */
  get unfinishedTurn() {
    const { turnId, reason, lastSeq } = this.#lastTurn ?? {};
    if (lastSeq !== undefined && lastSeq < (this.last?.seq ?? 0)) return null; // others came after it
    // Turns sealed by an older version have no metadata.
    const isUnfinished = reason === undefined ? this.#isUnanswered : UNFINISHED.includes(reason);
    return isUnfinished ? (turnId ?? null) : null;
  }

  get #isUnanswered() {
    return this.last !== null && (this.last.chunk.type === 'error' || this.last.role === 'user');
  }
}
