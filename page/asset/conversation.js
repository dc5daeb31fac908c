// The open conversation: stored history, then the running turn, then what comes, each thing once.
//
// History already holds chunks of a turn that still runs: its prompt, and what its finished steps said. The server
// replays that turn's events from its `user-message` on to whoever subscribes without a cursor. So nothing of the
// running turn is taken from history: the status answer names the first chunk of the running turn (`turnSeq`), history
// is asked for up to it, and the replay shows the rest. This holds for steering messages and for equal prompts. A turn
// that tries another one again has no `user-message`: its `turn-start` says so.
//
// Races that this leaves:
// - Events that come while history is fetched are held back. A turn that began meanwhile may or may not be in the
//   answers, so they are asked for again. The same where history ends with the prompt of a turn that begins just then.
// - Events of a turn whose `user-message` was not taken are not shown: its end is in history already.
// - A `user-message` for a turn that is shown already is a replay: it is shown afresh, in its place.
// Should stream and status disagree for a while (an event was lost, a server restarted), all is loaded again.
import { Again } from './again.js';
import { ApiError, getHistory, isConversationId } from './api.js';
import { perFrame } from './frame.js';
import { Outgoing } from './outgoing.js';
import { Press } from './press.js';
import { release } from './revise.js';
import { WINDOW, getSnapshot } from './snapshot.js';
import { Story } from './story.js';
import * as transcript from './transcript.js';
import { Watchdog } from './watchdog.js';

const isPrompt = (event) => event.type === 'user-message';
const isBegin = (event) => isPrompt(event) || event.retryOf !== undefined;

/** What the server says of a conversation that somebody deleted. */
const GONE = /^there is no conversation/;

/** This page can take text back, so a broken answer may be streamed again. */
const WITH_REWINDS = { retry: { afterContent: 'rewind' }, extensions: true };

export class Conversation {
  id;
  isGone = false; // there is no such conversation
  #socket;
  #model;
  #dock;
  #onChange;
  #again;
  #story = new Story();
  #status = 'idle';
  #outgoing = new Outgoing();
  #images = new Map(); // by turn: those of the message that it began with
  #inbox = []; // events that are not shown yet
  #cursor; // of the last event that came
  #load = null; // the load under way
  #wasLoaded = false;
  #isKnown = false; // it was shown, or our message made it
  #press;
  #wasIdle = false; // when it was loaded, and no turn began since
  #replayDue = false; // a turn runs whose user-message is still to come
  #subscribed = false;
  #resumed = false; // subscribed with a cursor: nothing came and nothing else was sent since
  #left = false;
  #watchdog = new Watchdog(() => this.#distrust());
  #drain = perFrame(() => this.#takeInbox());

  /** Without `id` it is one that its first message will make. `model()`: the one that is picked now. */
  constructor({ id, socket, dock, onChange, model }) {
    this.id = id;
    this.#socket = socket;
    this.#dock = dock;
    this.#onChange = onChange;
    this.#again = new Again((turnId, chosen) => this.#askAgain({ turnId, model: chosen }));
    this.#model = model;
    const show = (type) => (dock.pressed = this.#again.pressed = type);
    this.#press = new Press({ command: (type, fields) => this.command(type, fields), onChange: show });
  }

  get isRunning() {
    return this.#replayDue || this.#outgoing.isPending || this.#story.isRunning;
  }

  /** Whether there is nothing to show, and nothing under way. */
  get isEmpty() {
    return this.id === undefined && !this.#story.turnId && !this.#outgoing.isPending;
  }

  /** Whether its turn waits for people alone. */
  get needsYou() {
    return this.#status === 'queued';
  }

  /** When its wait ends, by the server's clock; undefined when it does not wait. */
  get waitsUntil() {
    return this.#dock.waitsUntil;
  }

  /** What is left of its wait, in a few characters; undefined without one. */
  get left() {
    return this.#dock.left;
  }

  /** What it is about, as far as is known here: the last prompt. */
  get prompt() {
    return this.#story.prompt;
  }

  /** Whether it was asked to stop and still runs. */
  get isStopping() {
    return this.#press.type === 'chat.stop';
  }

  /** What the button says that was pressed while there is no connection: given again when it is back. */
  get unsent() {
    return this.#press.unsent;
  }

  /** Shows the conversation as the server knows it. */
  async load() {
    if (!isConversationId(this.id)) return this.#vanish();
    const load = (this.#load = {});
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
      if (error.status === 404) return this.#vanish();
      transcript.show(transcript.notice(error.message));
    }
    this.#onChange();
  }

  #vanish() {
    this.#load = null;
    this.isGone = true;
    transcript.show(transcript.notice('Conversation not found.', transcript.newLink()));
    this.#onChange();
  }

  #show({ status, isRunning, window }) {
    this.#load = null;
    this.isGone = false;
    this.#isKnown = true;
    // Turns that ended before are in history; of the running one all is replayed.
    const running = this.#inbox.findLastIndex(isBegin);
    this.#inbox = isRunning && running >= 0 ? this.#inbox.slice(running) : [];
    this.#replayDue = isRunning && running < 0;
    this.#wasIdle = !isRunning;
    this.#status = status.status;
    this.#again.offer(null);
    this.#dock.hide();
    this.#dock.restore(status.retry);
    const older = window.chunks[0]?.seq > 1 ? [transcript.olderButton(() => this.#loadOlder())] : [];
    this.#story.show(window, older, this.#outgoing.nodes);
    this.#takeInbox();
  }

  /** Whether there are still older chunks after this. */
  async #loadOlder() {
    try {
      const window = await getHistory(this.id, WINDOW, this.#story.oldest);
      this.#story.prepend(window);
      return window.chunks.length > 0 && this.#story.oldest > 1;
    } catch {
      return true;
    }
  }

  /** The connection is there (again). */
  resume() {
    if (!this.id) return;
    this.#subscribed = false;
    // Of a running turn the server has every event; of what came after a sealed one perhaps no longer. And what was
    // pressed is given again only to what it was meant for: that is known when all was replayed.
    const isRunning = this.#cursor !== undefined && !this.#load && this.#story.isRunning;
    if (!isRunning || this.#press.type) return void this.load();
    this.#resumed = true;
    this.#subscribed = this.command('chat.subscribe', { cursor: this.#cursor, extensions: true });
  }

  /** There is no connection: what is stored can be shown all the same, and what was pressed may not have arrived. */
  disconnected() {
    this.#press.lose();
    if (this.id && !this.#wasLoaded) this.load();
  }

  /** No longer shown. */
  leave() {
    this.#left = true;
    this.#watchdog.rest();
    if (this.#subscribed) this.command('chat.unsubscribe');
    this.#press.drop();
    this.#dock.hide();
  }

  /** The conversation that the first message made. */
  adopt(id) {
    this.id = id;
    this.#subscribed = this.#wasLoaded = this.#isKnown = true;
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
    if (this.isGone) this.load(); // somebody made it meanwhile
    this.#check();
  }

  /** The server could not do something. True when that is dealt with and the person need not be told elsewhere. */
  refused(why) {
    const wasAgain = this.#press.type === 'chat.retry' && !this.#press.isRevision;
    this.#press.drop();
    release();
    if (wasAgain) this.#again.refused(why);
    if (this.#resumed || GONE.test(why)) this.load(); // our cursor is not known any more
    return wasAgain || this.isGone || this.#load !== null; // the answers of the load tell
  }

  /** Starts a turn. False when there is no connection, or nothing is known yet of the conversation. */
  send(message, model, images = []) {
    if (this.id !== undefined && !this.#isKnown) return false; // the server would make one of this name
    const pictures = images.length > 0 && { images };
    const command = { type: 'chat.send', conversationId: this.id, message, model, ...pictures, ...WITH_REWINDS };
    if (!this.#socket.send(command)) return false;
    this.#resumed = false;
    this.#again.offer(null);
    this.#outgoing.prompt(message, images);
    this.#onChange();
    return true;
  }

  /** Leaves a text for the running turn. False when there is no connection. */
  enqueue(text) {
    this.#resumed = false;
    const sent = this.command('chat.queue', { text });
    if (sent) this.#outgoing.queue(text);
    return sent;
  }

  /** The text and images that were sent and never confirmed, if any: they are no longer under way. */
  takeBack() {
    const taken = this.#outgoing.takeBack();
    this.#onChange();
    return taken;
  }

  /** Sends a command about this conversation. Whether that was possible. */
  command(type, fields = {}) {
    return this.id !== undefined && this.#socket.send({ type, conversationId: this.id, ...fields });
  }

  /** Gives the command of a button: now or when the connection is back. */
  press(type, fields) {
    this.#resumed = false;
    this.#press.give(type, fields, this.#now);
    this.#onChange();
  }

  /** Answers a message again, or another text in its place: `{ seq, message?, model? }`. */
  revise(what) {
    if (this.isRunning || !Number.isInteger(what.seq)) return release();
    this.#askAgain({ ...what, turnId: this.#story.lastTurn });
  }

  #askAgain(fields) {
    this.press('chat.retry', { ...fields, model: fields.model ?? (this.#model() || undefined), ...WITH_REWINDS });
  }

  /** What a button can be about. */
  get #now() {
    const [{ turnId, isRunning }, { stage, retry }] = [this.#story, this.#dock];
    return { turnId, isRunning, isPending: this.#outgoing.isPending, stage, retry, unfinished: this.#unfinished };
  }

  #takeInbox() {
    if (this.#load || this.#left) return;
    const events = this.#inbox;
    this.#inbox = [];
    if (events.some(isPrompt) && this.#mayShowIts) return void this.load();
    if (events.some((event) => this.#story.mustReload(event))) return void this.load();
    for (const event of events) this.#take(event);
    if (this.#story.replacedForNothing) return void this.load();
    this.#story.flush(this.#dock.isWaiting);
    this.#again.offer(this.#unfinished);
    if (!this.#replayDue) this.#press.settle(this.#now);
    transcript.settle();
    this.#check();
    this.#onChange();
  }

  /** Whether history may already show the prompt of a turn that begins just now. */
  get #mayShowIts() {
    return this.#wasIdle && !this.#outgoing.isPending && this.#story.endsWithPrompt;
  }

  #take(event) {
    if (isBegin(event)) this.#begin(event);
    else if (!this.#story.receive(event)) return;
    if (event.type === 'status' || event.type === 'turn-sealed') this.#status = event.status ?? 'idle';
    this.#outgoing.receive(event);
    this.#dock.receive(event);
  }

  #begin(event) {
    this.#status = 'active';
    this.#replayDue = this.#wasIdle = false;
    // Events do not have them: of a turn that was begun here they are known.
    if (this.#outgoing.images.length > 0) this.#images.set(event.turnId, this.#outgoing.images);
    this.#outgoing.begun();
    this.#again.offer(null);
    this.#story.begin({ ...event, images: this.#images.get(event.turnId) });
  }

  /** The last turn, when it can be tried again. */
  get #unfinished() {
    return this.isRunning ? null : this.#story.unfinished;
  }

  #check() {
    const isUnderWay = this.#status === 'active' || this.#status === 'queued';
    const agree = !this.#replayDue && this.#story.isRunning === isUnderWay;
    this.#watchdog.observe(agree || this.id === undefined || this.#left);
  }

  #distrust() {
    if (this.#socket.isOpen && !this.#load) this.load();
    else this.#check();
  }
}
