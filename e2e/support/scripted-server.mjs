#!/usr/bin/env node
// A server that speaks the wire and does what a test tells it to: it shows the page states that a real provider would
// have to fail in just the right way for. Started by hand (`serve`) it also plays the model `demo/flaky`.
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { accept, decode, encode } from './frame.mjs';

const PAGE = new URL('../../server/page/', import.meta.url);
const TYPES = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export class ScriptedServer {
  /** Called with each new turn: `(turn) => {}`. The default leaves the turn to the test. */
  onTurn = () => {};
  /** Called with each command of a client. */
  onCommand = () => {};
  models = ['demo/flaky', 'demo/other'];
  token = null;
  /** Awaited before a call is answered: `async (path) => {}`. */
  beforeAnswer = async () => {};
  conversations = new Map();
  commands = [];
  #clients = new Set();
  #server = createServer((request, response) => this.#answer(request, response));

  async listen() {
    this.#server.on('upgrade', (request, socket) => this.#upgrade(request, socket));
    await new Promise((resolve) => this.#server.listen(this.port ?? 0, '127.0.0.1', resolve));
    this.port = this.#server.address().port;
    this.url = `http://127.0.0.1:${this.port}`;
    return this;
  }

  /** Ends all WebSockets, as a broken network does. */
  cut() {
    for (const client of this.#clients) client.socket.destroy();
  }

  close() {
    this.cut();
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  conversation(id = randomUUID()) {
    if (!this.conversations.has(id)) this.conversations.set(id, new Conversation(this, id));
    return this.conversations.get(id);
  }

  broadcast(message) {
    for (const client of this.#clients) client.send(message);
  }

  publish(conversation, event) {
    const cursor = String(conversation.events.push(event));
    for (const client of this.#clients) {
      if (client.subscriptions.has(conversation.id)) client.send({ type: 'chat.delta', event, cursor });
    }
  }

  async #answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, 'http://host');
    await this.beforeAnswer(pathname);
    const reply = (status, body, type = 'application/json') => {
      response.writeHead(status, { 'content-type': type, 'content-security-policy': POLICY });
      response.end(type === 'application/json' ? JSON.stringify(body) : body);
    };
    const file = pathname === '/' ? 'index.html' : /^\/page\/([\w-]+\.\w+)$/.exec(pathname)?.[1];
    if (file) {
      const body = await readFile(new URL(file, PAGE)).catch(() => null);
      return body ? reply(200, body, TYPES[file.split('.').at(-1)]) : reply(404, { error: 'no such file' });
    }
    if (this.token && request.headers.authorization !== `Bearer ${this.token}`) {
      return reply(401, { error: 'a token is required' });
    }
    if (pathname === '/models') return reply(200, { models: this.models });
    if (pathname === '/conversations') {
      const all = [...this.conversations.values()].map((each) => each.summary);
      return reply(200, all.sort((a, b) => b.lastActivityAt - a.lastActivityAt));
    }
    const [, id, part] = /^\/conversations\/([^/]+)(?:\/(\w+))?$/.exec(pathname) ?? [];
    const conversation = this.conversations.get(id);
    if (!conversation) return reply(404, { error: `no conversation ${id}` });
    if (part === 'status') return reply(200, conversation.state);
    const number = (name, otherwise) => Number(searchParams.get(name) ?? otherwise);
    reply(200, conversation.window(number('sinceSeq', 0), number('beforeSeq', Infinity), number('limit', Infinity)));
  }

  #upgrade(request, socket) {
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(/,\s*/);
    const expected = this.token && `bearer.${Buffer.from(this.token).toString('base64url')}`;
    if (expected && !offered.includes(expected)) return socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
    accept(request, socket, offered.includes('everturn') ? 'everturn' : undefined);
    const send = (message) => socket.write(encode(JSON.stringify(message)));
    const client = { socket, send, subscriptions: new Set() };
    this.#clients.add(client);
    socket.on('error', () => {});
    socket.on('close', () => this.#clients.delete(client));
    decode(socket, (text) => this.#obey(client, JSON.parse(text)), () => socket.end());
  }

  #obey(client, command) {
    this.commands.push(command);
    this.onCommand(command);
    const { type, conversationId } = command;
    const conversation = this.conversations.get(conversationId);
    if (type === 'chat.send') {
      const target = this.conversation(conversationId);
      if (target.turn) {
        return client.send({ type: 'chat.error', conversationId, message: 'a turn is running: queue the message' });
      }
      client.subscriptions.add(target.id);
      return target.begin(command.message);
    }
    if (!conversation) return client.send({ type: 'chat.error', conversationId, message: 'no such conversation' });
    switch (type) {
      case 'chat.subscribe': {
        client.subscriptions.add(conversationId);
        const from = command.cursor ? Number(command.cursor) : (conversation.turn?.firstEvent ?? Infinity);
        return conversation.events.slice(from).forEach((event, index) => {
          client.send({ type: 'chat.delta', event, cursor: String(from + index + 1) });
        });
      }
      case 'chat.unsubscribe':
        return client.subscriptions.delete(conversationId);
      case 'chat.queue':
        return conversation.enqueue({ messageId: command.messageId ?? randomUUID(), text: command.text });
      case 'chat.queue.cancel':
        return conversation.dequeue(command.messageId);
      case 'chat.stop':
      case 'retry.abort':
        return conversation.turn?.end('aborted');
      case 'retry.now':
        return conversation.turn?.skip?.();
    }
  }
}

class Conversation {
  events = [];
  chunks = [];
  queue = [];
  turn = null;

  constructor(server, id) {
    this.server = server;
    this.id = id;
    this.at = Date.now();
  }

  get summary() {
    const { id, at, status } = this;
    const title = this.chunks.find(({ role }) => role === 'user')?.chunk.text.slice(0, 60) ?? '';
    return { id, createdAt: at, lastActivityAt: at, title, status, workspaceId: 'default' };
  }

  get status() {
    return this.turn ? 'active' : 'idle';
  }

  get state() {
    const { id: conversationId, status, turn } = this;
    return { conversationId, status, isActive: turn !== null, ...(turn && { turnSeq: turn.firstSeq }) };
  }

  window(since, before, limit) {
    const inside = this.chunks.filter(({ seq }) => seq > since && seq < before);
    const chunks = Number.isFinite(limit) ? inside.slice(-limit) : inside;
    return { chunks, latestSeq: chunks.at(-1)?.seq ?? since };
  }

  keep(role, chunk) {
    this.at = Date.now();
    this.chunks.push({ seq: this.chunks.length + 1, role, chunk });
  }

  begin(text) {
    this.turn = new Turn(this, text);
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

  constructor(conversation, text) {
    this.conversation = conversation;
    this.prompt = text;
    this.firstEvent = conversation.events.length;
    this.firstSeq = conversation.chunks.length + 1;
    conversation.keep('user', { type: 'text', text });
    this.tell({ type: 'user-message', text }, { type: 'turn-start' });
  }

  /** Publishes events as they are; keeps what history keeps. */
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
    this.tell({ type: 'done', reason, durationMs: 1234, ...figures }, { type: 'turn-sealed' });
    this.conversation.sealed();
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
    if (type === 'step-rewound') this.#said = [];
    if (type === 'step-complete') this.#keepStep();
    if (type === 'tool-result') this.conversation.keep('tool', { ...event });
    if (type === 'steering') this.conversation.keep('user', { type: 'text', text: event.text });
    if (type === 'error') {
      this.#keepStep();
      this.conversation.keep('assistant', { ...event });
    }
  }

  #keepStep() {
    for (const chunk of this.#said) this.conversation.keep('assistant', chunk);
    this.#said = [];
  }
}

const OVERLOADED =
  'HTTP 529: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_demo"}';

/** Fails twice, then answers; both waits can be skipped. */
async function playFlaky(turn) {
  const running = () => turn.conversation.turn === turn;
  for (const [attempt, delayMs] of [5000, 10_000].entries()) {
    const nextAt = Date.now() + delayMs;
    const retry = { type: 'provider-retry', attempt, delayMs, nextAt, message: OVERLOADED, code: '529' };
    turn.tell({ ...retry, category: 'overloaded', maxAttempts: 21, target: 'demo/flaky' });
    await new Promise((resolve) => {
      turn.skip = resolve;
      setTimeout(resolve, delayMs);
    });
    if (!running()) return;
  }
  turn.tell({ type: 'retry-ended', attempts: 2, outcome: 'recovered' });
  if (/dice/.test(turn.prompt)) rollDice(turn);
  const answer = `You said: ${turn.prompt}\n\n1. The first call was **refused**.\n2. So was the second.\n3. The third one held.\n`;
  for (const delta of answer.match(/\S*\s*/g)) {
    await new Promise((resolve) => setTimeout(resolve, 30));
    if (!running()) return;
    if (delta) turn.say(delta);
  }
  const usage = { inputTokens: 42, outputTokens: 31 };
  turn.tell({ type: 'usage', usage }, { type: 'step-complete', stepId: `${turn.id}#0`, ttftMs: 30, decodeMs: 900 });
  turn.end('stop', { usage, contextSize: 73 });
}

function rollDice(turn) {
  const call = { stepId: `${turn.id}#0`, toolCallId: 'roll', toolName: 'roll_dice' };
  turn.tell(
    { type: 'tool-call', ...call, input: { count: 2 } },
    { type: 'step-complete', stepId: call.stepId },
    { type: 'tool-result', ...call, content: '3, 5', isError: false, durationMs: 1 },
  );
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const server = new ScriptedServer();
  server.port = Number(process.env.PORT ?? 0);
  server.token = process.env.EVERTURN_TOKEN ?? null;
  server.onTurn = playFlaky;
  await server.listen();
  console.log(`listening on ${server.url}`);
}
