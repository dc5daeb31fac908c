#!/usr/bin/env node
// A server that speaks the wire format and is controlled by a test, for page states that a real provider would rarely
// cause. Started by hand (`serve`), it also plays the model `demo/flaky`.
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { accept, decode, encode } from './frame.mjs';
import { Conversation } from './scripted-conversation.mjs';

const PAGE = new URL('../../../server/page/asset/', import.meta.url);
const TYPES = { html: 'text/html', js: 'text/javascript', mjs: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', woff2: 'font/woff2' };
const POLICY =
  "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'; trusted-types dompurify";

export class ScriptedServer {
  /** Called with each new turn: `(turn) => {}`. The default leaves the turn to the test. */
  onTurn = () => {};
  /** No WebSocket is accepted before this. */
  opensSockets = Promise.resolve();
  /** Called with each command of a client. */
  onCommand = () => {};
  /** Whether a command is carried out: `(command) => true`. One that is not is lost, or refused with the text returned. */
  obeys = () => true;
  models = ['demo/flaky', 'demo/other'];
  targets = []; // as `GET /targets` tells them
  usage = null; // what `GET /usage` tells, by what and from when
  callers = null; // what `GET /callers` tells
  calls = []; // as `GET /calls` tells them
  ordered = []; // what was ordered about calls, as paths
  tools = { tools: [], sources: [] }; // as `GET /tools` tells them
  cluster = { nodes: [] }; // as `GET /cluster` tells them
  token = null;
  /** Awaited before a call is answered: `async (path) => {}`. */
  beforeAnswer = async () => {};
  /** Whether an answer is cut in the middle: `(path) => false`. */
  cuts = () => false;
  conversations = new Map();
  commands = [];
  #clients = new Set();
  #server;

  async listen() {
    this.#server = createServer((request, response) => this.#answer(request, response));
    // No idle connection is closed just as the page uses it.
    this.#server.keepAliveTimeout = 0;
    this.#server.on('upgrade', (request, socket) => this.#upgrade(request, socket));
    await new Promise((resolve) => this.#server.listen(this.port ?? 0, '127.0.0.1', resolve));
    this.port = this.#server.address().port;
    this.url = `http://127.0.0.1:${this.port}`;
    return this;
  }

  /** Closes all WebSockets abruptly. */
  cut() {
    for (const client of this.#clients) client.socket.destroy();
  }

  close() {
    this.cut();
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  /** Listens again at the same address, with its state. */
  reopen() {
    return this.listen();
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
      const bytes = Buffer.from(type === 'application/json' ? JSON.stringify(body) : body);
      if (this.cuts(pathname)) response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
      else response.end(bytes);
    };
    const file = pathname === '/' ? 'index.html' : /^\/page\/((?:[\w-]+\/)*[\w.-]+\.\w+)$/.exec(pathname)?.[1];
    if (file) {
      const body = await readFile(new URL(file, PAGE)).catch(() => null);
      return body ? reply(200, body, TYPES[file.split('.').at(-1)]) : reply(404, { error: 'no such file' });
    }
    if (this.token && request.headers.authorization !== `Bearer ${this.token}`) {
      return reply(401, { error: request.headers.authorization ? 'this server does not know this token' : 'a token is required' });
    }
    if (pathname === '/models') return reply(200, { models: this.models });
    if (pathname === '/tools') return reply(200, this.tools);
    if (pathname.endsWith('/model-settings')) return reply(200, {});
    if (pathname === '/cluster') return reply(200, this.cluster);
    if (pathname === '/calls') return reply(200, { calls: this.calls });
    if (pathname.startsWith('/calls/')) {
      this.ordered.push(pathname);
      return reply(200, { callId: pathname.split('/')[2] });
    }
    if (pathname === '/callers') return reply(200, this.callers);
    if (pathname === '/usage') return reply(200, this.usage(searchParams.get('by'), searchParams.get('from')));
    if (pathname === '/targets') return reply(200, { targets: this.targets });
    if (pathname === '/conversations') {
      const word = searchParams.get('search') ?? '';
      const found = ({ chunks }) => chunks.find(({ chunk }) => chunk.text?.includes(word));
      const summaries = [...this.conversations.values()].filter((each) => word === '' || found(each)).map((each) => {
        if (word === '' || each.summary.title.includes(word)) return each.summary;
        const { seq, role, chunk } = found(each);
        return { ...each.summary, passage: { seq, role, text: chunk.text } };
      });
      return reply(200, summaries.sort((a, b) => b.lastActivityAt - a.lastActivityAt));
    }
    const [, id, part] = /^\/conversations\/([^/]+)(?:\/(\w+))?$/.exec(pathname) ?? [];
    const conversation = this.conversations.get(id);
    if (!conversation) return reply(404, { error: `no conversation ${id}` });
    if (part === 'status') return reply(200, conversation.state);
    const number = (name, otherwise) => Number(searchParams.get(name) ?? otherwise);
    reply(200, conversation.window(number('sinceSeq', 0), number('beforeSeq', Infinity), number('limit', Infinity)));
  }

  async #upgrade(request, socket) {
    // The page may be gone before it is answered, also if it is refused.
    socket.on('error', () => {});
    await this.opensSockets;
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(/,\s*/);
    const expected = this.token && `bearer.${Buffer.from(this.token).toString('base64url')}`;
    if (expected && !offered.includes(expected)) return socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
    accept(request, socket, offered.includes('everturn') ? 'everturn' : undefined);
    const send = (message) => socket.write(encode(JSON.stringify(message)));
    const client = { socket, send, subscriptions: new Set() };
    this.#clients.add(client);
    socket.on('close', () => this.#clients.delete(client));
    decode(socket, (text) => this.#obey(client, JSON.parse(text)), () => socket.end());
  }

  #obey(client, command) {
    this.commands.push(command);
    this.onCommand(command);
    const { type, conversationId, messageId } = command;
    const verdict = this.obeys(command);
    if (verdict !== true) return verdict && client.send({ type: 'chat.error', conversationId, messageId, message: verdict });
    const conversation = this.conversations.get(conversationId);
    if (type === 'chat.send') {
      const target = this.conversation(conversationId);
      if (target.turn) {
        return client.send({ type: 'chat.error', conversationId, message: 'a turn is running: queue the message' });
      }
      client.subscriptions.add(target.id);
      return target.begin(command.message, command.images);
    }
    if (!conversation) return client.send({ type: 'chat.error', conversationId, message: `there is no conversation ${conversationId}` });
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
      case 'chat.retry': {
        const refusal = conversation.refusal(command.turnId);
        if (refusal) return client.send({ type: 'chat.error', conversationId, message: refusal });
        client.subscriptions.add(conversationId);
        return conversation.beginAgain(command.turnId);
      }
      case 'chat.stop':
      case 'retry.abort':
        return conversation.turn?.end('aborted');
      case 'retry.now':
        return conversation.turn?.skip?.();
    }
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
    turn.tell({ type: 'status', status: 'active', retry: { ...retry, type: undefined, phase: 'asking', nextAt: undefined } });
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
