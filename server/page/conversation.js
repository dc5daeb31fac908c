// The open conversation: stored history, then the running turn, then what comes, each thing once.
//
// History already holds chunks of a turn that still runs: its prompt, and what its finished steps said. The server
// replays that turn's events from its `user-message` on to whoever subscribes without a cursor. So nothing of the
// running turn is taken from history: the status answer names the first chunk of the running turn (`turnSeq`), history
// is asked for up to it, and the replay shows the rest. This holds for steering messages and for equal prompts.
//
// Races that this leaves:
// - Events that come while history is fetched are held back. A turn that began meanwhile may or may not be in the
//   answers, so they are asked for again. The same where history ends with the prompt of a turn that begins just then.
// - Events of a turn whose `user-message` was not taken are not shown: its end is in history already.
// - A `user-message` for a turn that is shown already is a replay: it is shown afresh, in its place.
// Should stream and status disagree for a while (an event was lost, a server restarted), all is loaded again.
import { Again } from './again.js';
import { ApiError, getHistory } from './api.js';
import { element } from './element.js';
import { perFrame } from './frame.js';
import { History } from './history.js';
import { WINDOW, getSnapshot } from './snapshot.js';
import * as transcript from './transcript.js';
import { Turn, bubble } from './turn.js';
import { Watchdog } from './watchdog.js';

const CONFIRMS_QUEUE = new Set(['queue-changed', 'user-message', 'steering']);
const isBegin = (event) => event.type === 'user-message';

export class Conversation {
  id;
  #socket;
  #banner;
  #queue;
  #onChange;
  #again;
  #history = new History();
  #turn = null; // the last turn that was streamed to us
  #status = 'idle';
  #pending = null; // what the person sent and the server has not confirmed: { text, node }
  #unqueued = ''; // a text that was sent to be queued and the server has not confirmed
  #inbox = []; // events that are not shown yet
  #cursor; // of the last event that came
  #load = null; // the load under way
  #wasLoaded = false;
  #wasIdle = false; // when it was loaded, and no turn began since
  #replayDue = false; // a turn runs whose user-message is still to come
  #subscribed = false;
  #resumed = false; // subscribed with a cursor, and nothing came yet
  #left = false;
  #watchdog = new Watchdog(() => this.#distrust());
  #drain = perFrame(() => this.#takeInbox());

  /** Without `id` it is one that its first message will make. */
  constructor({ id, socket, banner, queue, onChange, onTryAgain }) {
    this.id = id;
    this.#socket = socket;
    this.#banner = banner;
    this.#queue = queue;
    this.#onChange = onChange;
    this.#again = new Again(onTryAgain);
  }

  get isRunning() {
    return this.#replayDue || this.#pending !== null || this.#streams;
  }

  /** Whether there is nothing to show, and nothing under way. */
  get isEmpty() {
    return this.id === undefined && !this.#turn && !this.#pending;
  }

  /** What it is about, as far as is known here: the last prompt. */
  get prompt() {
    return this.#turn?.text ?? this.#history.lastPrompt;
  }

  get #streams() {
    return this.#turn !== null && !this.#turn.sealed;
  }

  /** Shows the conversation as the server knows it. */
  async load() {
    const load = {};
    this.#load = load;
    this.#wasLoaded = true;
    this.#cursor = undefined;
    this.#resumed = false;
    this.#inbox = [];
    if (this.#subscribed) this.command('chat.unsubscribe');
    this.#subscribed = this.command('chat.subscribe', { extensions: true });
    const isCurrent = () => load === this.#load && !this.#left;
    try {
      const snapshot = await getSnapshot(this.id, () => this.#inbox.filter(isBegin).length);
      if (isCurrent()) this.#show(snapshot);
    } catch (error) {
      if (!isCurrent()) return;
      this.#load = null;
      this.#inbox = [];
      if (!(error instanceof ApiError)) return; // no connection: loaded when it is back
      const text = error.status === 404 ? 'This conversation is not here (any more).' : error.message;
      transcript.show(element('p', { className: 'note gone' }, text));
    }
    this.#onChange();
  }

  #show({ status, isRunning, chunks }) {
    this.#load = null;
    // Turns that ended before are in history; of the running one all is replayed.
    const running = this.#inbox.findLastIndex(isBegin);
    this.#inbox = isRunning && running >= 0 ? this.#inbox.slice(running) : [];
    this.#replayDue = isRunning && running < 0;
    this.#wasIdle = !isRunning;
    this.#status = status.status;
    this.#turn = null;
    this.#again.offer(null);
    this.#banner.hide();
    this.#queue.hide();
    this.#history = new History();
    this.#history.prepend(chunks);
    const older = chunks[0]?.seq > 1 ? [transcript.olderButton(() => this.#loadOlder())] : [];
    const pending = this.#pending ? [this.#pending.node] : [];
    transcript.show(...older, this.#history.node, ...pending);
    this.#takeInbox();
  }

  /** Whether there are still older chunks after this. */
  async #loadOlder() {
    try {
      const { chunks } = await getHistory(this.id, WINDOW, this.#history.oldest);
      transcript.above(() => this.#history.prepend(chunks));
      return chunks.length > 0 && this.#history.oldest > 1;
    } catch {
      return true;
    }
  }

  /** The connection is there (again). */
  resume() {
    if (!this.id) return;
    this.#subscribed = false;
    // Of a running turn the server has every event; of what came after a sealed one perhaps no longer.
    if (this.#cursor === undefined || this.#load || !this.#streams) return void this.load();
    this.#resumed = true;
    this.#subscribed = this.command('chat.subscribe', { cursor: this.#cursor, extensions: true });
  }

  /** There is no connection: what is stored can be shown all the same. */
  showStored() {
    if (this.id && !this.#wasLoaded) this.load();
  }

  /** No longer shown. */
  leave() {
    this.#left = true;
    this.#watchdog.rest();
    if (this.#subscribed) this.command('chat.unsubscribe');
    this.#banner.hide();
    this.#queue.hide();
  }

  /** The conversation that the first message made. */
  adopt(id) {
    this.id = id;
    this.#subscribed = true;
    this.#wasLoaded = true;
  }

  receive(event, cursor) {
    this.#cursor = cursor ?? this.#cursor;
    this.#resumed = false;
    this.#inbox.push(event);
    if (!this.#load) this.#drain();
  }

  /** The status as it was told to every client. */
  statusChanged(status) {
    this.#status = status;
    this.#check();
  }

  /** The server could not do something. True when that is dealt with and the person need not know. */
  refused() {
    if (this.#resumed) this.load(); // our cursor is not known any more
    return this.#load !== null; // the answers of the load tell
  }

  /** Starts a turn. False when there is no connection. */
  send(message, model) {
    const command = { type: 'chat.send', conversationId: this.id, message, model, extensions: true };
    if (!this.#socket.send(command)) return false;
    this.#again.offer(null);
    this.#pending = { text: message, node: bubble(message, 'pending') };
    transcript.append(this.#pending.node);
    transcript.toEnd();
    this.#onChange();
    return true;
  }

  /** Leaves a text for the running turn. False when there is no connection. */
  enqueue(text) {
    const sent = this.command('chat.queue', { text });
    if (sent) this.#unqueued = text;
    return sent;
  }

  /** The text that was sent and never confirmed, if any: it is no longer under way. */
  takeBack() {
    const text = this.#pending?.text ?? this.#unqueued;
    this.#confirm();
    this.#unqueued = '';
    this.#onChange();
    return text;
  }

  /** Sends a command about this conversation. Whether that was possible. */
  command(type, fields = {}) {
    return this.id !== undefined && this.#socket.send({ type, conversationId: this.id, ...fields });
  }

  #takeInbox() {
    if (this.#load || this.#left) return;
    const events = this.#inbox;
    this.#inbox = [];
    if (events.some(isBegin) && this.#mayShowIts) return void this.load();
    for (const event of events) this.#take(event);
    this.#turn?.flush();
    this.#turn?.waiting(this.#banner.waiting);
    this.#again.offer(this.#promptToRepeat());
    transcript.settle();
    this.#check();
    this.#onChange();
  }

  /** Whether history may already show the prompt of a turn that begins just now. */
  get #mayShowIts() {
    return this.#wasIdle && !this.#pending && this.#history.last?.role === 'user';
  }

  #take(event) {
    if (isBegin(event)) this.#begin(event);
    else if (event.turnId !== undefined && event.turnId !== this.#turn?.id) return;
    else this.#turn?.receive(event);
    if (event.type === 'status') this.#status = event.status;
    if (event.type === 'turn-sealed') this.#status = 'idle';
    if (CONFIRMS_QUEUE.has(event.type)) this.#unqueued = '';
    this.#banner.receive(event);
    this.#queue.receive(event);
  }

  #begin(event) {
    const turn = new Turn(event);
    this.#status = 'active';
    this.#replayDue = false;
    this.#wasIdle = false;
    this.#confirm();
    this.#again.offer(null);
    if (this.#turn?.id === turn.id) this.#turn.node.replaceWith(turn.node);
    else transcript.append(turn.node);
    this.#turn = turn;
  }

  #confirm() {
    this.#pending?.node.remove();
    this.#pending = null;
  }

  /** The prompt of a last turn that ended without an answer. */
  #promptToRepeat() {
    if (this.isRunning) return null;
    if (this.#turn) return this.#turn.failed || this.#turn.aborted ? this.#turn.text : null;
    return this.#history.unanswered ? this.#history.lastPrompt : null;
  }

  #check() {
    const agree = !this.#replayDue && (this.#status === 'queued' || this.#streams === (this.#status === 'active'));
    this.#watchdog.observe(agree || this.id === undefined || this.#left);
  }

  #distrust() {
    if (this.#socket.isOpen && !this.#load) this.load();
    else this.#check();
  }
}
