// One window of stored chunks as sections, one per turn.
import { summaryFold } from './compaction.js';
import { Passage } from './passage.js';
import { FINAL_REPORT, guidance, reportCard } from './report.js';
import { attachments } from './picture.js';
import { Section, bubble } from './section.js';

/** A turn that ended before any of it was kept. */
const isEmpty = ({ firstSeq, lastSeq }) => lastSeq < firstSeq;

export class Stored {
  sections = [];
  replacesOlder = false; // the first section tries again what is in an older window
  replaced = []; // what versions in this window replaced: { from, before }
  calls = new Map(); // cards that have no result yet, by key
  orphans = new Map(); // results whose call is in an older window: { card, chunk }, by key
  reports = new Map(); // of such calls: { node, finalReport }, by key
  #turns; // those that are still to come
  #shown;
  #turn = null; // what is known of the turn of the open section
  #last = null; // the last one of which something is known
  #seen = 0; // the last seq
  #section = null; // the open one
  #passage = null; // what the model says, until the person speaks
  #hasModel = false; // the model said something in the open section
  #asked = new Map(); // what was reported in the open section, by the key of its call
  #report; // the last one that was accepted
  #reportKey; // its call, if that is in an older window

  /**
   * `turns`: what is known about sealed turns, oldest first. Without such information, sections are inferred from the
   * chunks. `shown`: the ids of turns that already have sections.
   */
  constructor(turns, shown) {
    this.#shown = shown;
    this.#turns = turns.filter(({ firstSeq }) => firstSeq !== undefined);
  }

  add({ seq, role, chunk, supersedes }) {
    while (this.#turns[0]?.firstSeq <= seq) this.#begin(this.#turns.shift(), seq, supersedes);
    if (this.#turn && seq > this.#turn.lastSeq) this.#close();
    const isNext = !this.#turn && (supersedes !== undefined || (role === 'user' && this.#hasModel));
    if (!this.#section || isNext) this.#open(false);
    this.#show(role, chunk, seq);
    this.#passage?.end(seq); // each chunk is a text of its own
    if (supersedes !== undefined) this.replaced.push({ from: supersedes, before: seq });
    this.#seen = seq;
  }

  /** All chunks of this window have been added. */
  finish() {
    for (const turn of this.#turns.filter(isEmpty)) this.#begin(turn, turn.firstSeq);
    this.#close();
  }

  #begin(turn, seq, supersedes) {
    // A turn without chunks may be listed with the windows on both sides, and any turn with an adjacent window.
    const isHere = turn.lastSeq >= seq || (isEmpty(turn) && turn.firstSeq === seq && !this.#shown.has(turn.turnId));
    if (!isHere) return;
    this.#shown.add(turn.turnId);
    // A window may begin in the middle of a turn.
    const isAgain = turn.retryOf !== undefined && turn.firstSeq === seq;
    this.#open(isAgain && supersedes === undefined && this.#isUnfinished(turn.retryOf));
    this.#turn = this.#last = turn;
    this.#section.node.dataset.firstSeq = turn.firstSeq;
  }

  /** Whether this turn may be the last one without an answer. Its output is then superseded, marked or not. */
  #isUnfinished(turnId) {
    return !this.#last || (this.#last.turnId === turnId && this.#last.reason !== 'stop');
  }

  #open(replaces) {
    this.#close();
    if (replaces && this.sections.length > 0) this.sections.at(-1).replace();
    else this.replacesOlder ||= replaces;
    this.#section = new Section();
    this.sections.push(this.#section);
  }

  #close() {
    const turn = this.#turn;
    // The end of a turn whose last chunks are in a newer window is shown there.
    if (turn && (isEmpty(turn) || this.#seen >= turn.lastSeq)) {
      if (turn.finalReport) this.#endWith(turn.finalReport);
      if (turn.reason !== undefined) this.#section.ended(turn.reason);
      this.#section.seal(turn);
    }
    this.#turn = this.#section = this.#passage = null;
    this.#hasModel = false;
    this.#asked.clear();
    this.#report = this.#reportKey = undefined;
  }

  #endWith(finalReport) {
    const node = reportCard({ report: this.#report, ...finalReport });
    this.#section.append(node);
    if (this.#reportKey !== undefined) this.reports.set(this.#reportKey, { node, finalReport });
  }

  #show(role, chunk, seq) {
    const key = `${chunk.stepId ?? ''} ${chunk.toolCallId ?? ''}`;
    switch (chunk.type) {
      case 'text':
        return role === 'user' ? this.#fromPerson(chunk.text, seq) : this.#model.text(chunk.text);
      case 'thinking': // without words where the provider hides them
        return chunk.text && this.#model.reasoning(chunk.text);
      case 'tool-call':
        if (chunk.toolName === FINAL_REPORT) this.#asked.set(key, chunk.input);
        return this.calls.set(key, this.#model.call(chunk));
      case 'tool-result':
        return this.#result(key, chunk);
      case 'error':
        return this.#model.error({ ...chunk, category: chunk.category ?? this.#turn?.category });
      case 'image':
        return this.#image(chunk, seq);
      case 'system': // for the model
        return chunk.keepsFrom !== undefined ? this.#summary(chunk.text, seq) : this.#guidance(chunk.text);
      default: // of a newer version
    }
  }

  get #model() {
    this.#hasModel = true;
    if (!this.#passage) this.#section.append((this.#passage = new Passage()).node);
    return this.#passage;
  }

  #fromPerson(text, seq) {
    const isSteering = this.#turn && (this.#hasModel || this.#turn.retryOf !== undefined);
    this.#section.append(bubble(text, isSteering ? 'steering' : '', seq));
    this.#passage = null;
  }

  #image(chunk, seq) {
    this.#section.append(attachments([chunk], '', seq));
    this.#passage = null;
  }

  #guidance(text) {
    const line = guidance(text);
    if (line === undefined) return;
    this.#section.note(line);
    this.#passage = null;
  }

  #summary(text, seq) {
    this.#section.append(summaryFold(text, seq));
    this.#passage = null;
  }

  #result(key, chunk) {
    if (!chunk.isError && this.#asked.has(key)) this.#report = this.#asked.get(key);
    let card = this.calls.get(key);
    if (!card && !chunk.isError && chunk.toolName === FINAL_REPORT) this.#reportKey = key;
    if (!card) {
      card = this.#model.call({ toolCallId: chunk.toolCallId, toolName: chunk.toolName });
      this.orphans.set(key, { card, chunk });
    }
    card.result(chunk);
    this.calls.delete(key);
  }
}
