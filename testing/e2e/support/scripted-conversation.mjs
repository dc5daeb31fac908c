// A conversation of the scripted server, and its turns. It stores events like the real server.
import { randomUUID } from 'node:crypto';

export class Conversation {
  events = [];
  chunks = [];
  queue = [];
  turn = null;
  metrics = []; // of the turns that ended
  retry; // what the status says of the running turn's retries

  constructor(server, id) {
    this.server = server;
    this.id = id;
    this.at = Date.now();
  }

  get summary() {
    const { id, at, status } = this;
    const title = this.chunks.find(({ role, chunk }) => role === 'user' && chunk.text)?.chunk.text.split('\n')[0].slice(0, 60) ?? '';
    const endReason = this.turn ? undefined : this.metrics.at(-1)?.reason;
    return { id, createdAt: at, lastActivityAt: at, title, status, workspaceId: 'default', endReason };
  }

  get status() {
    return this.turn ? 'active' : 'idle';
  }

  get state() {
    const { id: conversationId, status, turn } = this;
    const { retry } = this;
    return { conversationId, status, isActive: turn !== null, ...(turn && { turnSeq: turn.firstSeq, retry }) };
  }

  window(since, before, limit) {
    const inside = this.chunks.filter(({ seq }) => seq > since && seq < before);
    const chunks = Number.isFinite(limit) ? inside.slice(-limit) : inside;
    const [first, last] = [chunks.at(0)?.seq ?? 1, chunks.at(-1)?.seq ?? 0];
    const turns = this.metrics.filter(({ firstSeq, lastSeq }) => firstSeq <= last + 1 && lastSeq >= first - 1);
    return { chunks, latestSeq: chunks.at(-1)?.seq ?? since, ...(turns.length > 0 && { turns }) };
  }

  keep(role, chunk) {
    this.at = Date.now();
    const isFirst = this.turn && this.chunks.length + 1 === this.turn.firstSeq;
    const supersedes = isFirst ? this.turn.supersedes : undefined;
    this.chunks.push({ seq: this.chunks.length + 1, role, chunk, ...(supersedes && { supersedes }) });
  }

  begin(text, images) {
    return this.#begin(new Turn(this, text, { images }));
  }

  /** Why a turn cannot be repeated, if it cannot. */
  refusal(turnId) {
    const last = this.metrics.at(-1);
    if (this.turn || last?.turnId !== turnId) return 'it is not the last turn of its conversation';
    return ['error', 'aborted'].includes(last.reason) ? null : 'it ended neither in an error nor by a stop';
  }

  beginAgain(retryOf) {
    const first = this.metrics.at(-1).firstSeq;
    const kept = this.chunks.findLastIndex(({ seq, role }) => seq < first || role !== 'assistant');
    const supersedes = this.chunks[kept + 1]?.seq;
    return this.#begin(new Turn(this, this.chunks.findLast(({ role }) => role === 'user').chunk.text, { retryOf, supersedes }));
  }

  #begin(turn) {
    this.turn = turn;
    this.#tellStatus();
    this.server.onTurn(this.turn);
    return this.turn;
  }

  sealed() {
    this.turn = null;
    this.#tellStatus();
    const next = this.queue.shift();
    const turn = next && this.begin(next.text);
    if (this.queue.length > 0) turn.tell({ type: 'queue-changed', queue: [...this.queue] });
  }

  enqueue(message) {
    if (!this.turn) return this.begin(message.text);
    this.queue.push(message);
    this.turn.tell({ type: 'queue-changed', queue: [...this.queue] });
  }

  dequeue(messageId) {
    this.queue = this.queue.filter((message) => message.messageId !== messageId);
    this.turn?.tell({ type: 'queue-changed', queue: [...this.queue] });
  }

  #tellStatus() {
    const { id: conversationId, status } = this;
    this.server.broadcast({ type: 'conversation.statusChanged', conversationId, status, workspaceId: 'default' });
  }
}

class Turn {
  id = randomUUID();
  #said = [];
  #steps = 0;
  #retries = 0;
  #category;

  constructor(conversation, text, { retryOf, supersedes, images = [] } = {}) {
    Object.assign(this, { conversation, retryOf, supersedes });
    this.prompt = text;
    this.firstEvent = conversation.events.length;
    this.firstSeq = conversation.chunks.length + 1;
    if (retryOf) return void this.tell({ type: 'turn-start', retryOf });
    if (text) conversation.keep('user', { type: 'text', text });
    for (const image of images) conversation.keep('user', { type: 'image', ...image });
    this.tell({ type: 'user-message', text }, { type: 'turn-start' });
  }

  /** Publishes events unchanged, and stores what belongs to history. */
  tell(...events) {
    for (const event of events) {
      this.#note(event);
      this.conversation.server.publish(this.conversation, {
        ...event,
        conversationId: this.conversation.id,
        turnId: this.id,
      });
    }
  }

  say(...deltas) {
    this.tell(...deltas.map((delta) => ({ type: 'text-delta', delta })));
  }

  /** Ends the turn. */
  end(reason = 'stop', figures = {}) {
    if (this.conversation.turn !== this) return;
    this.#keepStep();
    const told = { reason, durationMs: 1234, ...figures };
    this.tell({ type: 'done', ...told }, { type: 'turn-sealed' });
    const { id: turnId, firstSeq, retryOf, conversation } = this;
    const lastSeq = conversation.chunks.length;
    const usage = told.usage ?? { inputTokens: 0, outputTokens: 0 };
    const counts = { steps: this.#steps, retries: this.#retries || undefined, category: this.#category };
    conversation.metrics.push({ turnId, firstSeq, lastSeq, retryOf, ...told, usage, ...counts });
    conversation.sealed();
  }

  #note(event) {
    const { type } = event;
    const chunkOf = { 'text-delta': 'text', 'reasoning-delta': 'thinking' }[type];
    if (chunkOf) {
      const last = this.#said.at(-1);
      if (last?.type === chunkOf) last.text += event.delta;
      else this.#said.push({ type: chunkOf, text: event.delta });
    }
    if (type === 'tool-call') this.#said.push({ ...event });
    if (type === 'status' && event.retry?.phase === 'asking') this.#retries += 1;
    if (type === 'step-rewound') this.#said = [];
    if (type === 'step-complete') {
      this.#steps += 1;
      this.#keepStep();
    }
    if (type === 'tool-result') this.conversation.keep('tool', { ...event });
    if (type === 'steering') this.conversation.keep('user', { type: 'text', text: event.text });
    if (type === 'error') {
      this.#category = event.category;
      this.#keepStep();
      this.conversation.keep('assistant', { ...event });
    }
  }

  #keepStep() {
    for (const chunk of this.#said) this.conversation.keep('assistant', chunk);
    this.#said = [];
  }
}
