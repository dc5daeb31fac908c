// The open conversation: stored history, the running turn, then new events, each shown once.
//
// History already contains chunks of a running turn: its prompt, and the output of its finished steps. The server
// replays that turn's events from its `user-message` on to a subscriber without a cursor. So nothing of the running
// turn is taken from history: the status response has the first chunk of the running turn (`turnSeq`), history is
// fetched up to it, and the replay shows the rest. This also works for steering messages and equal prompts. A turn that
// repeats another has no `user-message`; its `turn-start` says so. Nor has one that only summarizes; its
// `compaction-started` does.
//
// Remaining races:
// - Events that arrive while history is being fetched are held back. A turn that began meanwhile may or may not be in
//   the responses, so they are fetched again. The same happens if history ends with the prompt of a turn that is just
//   beginning.
// - Events of a turn whose `user-message` was not seen are not shown, because its end is already in history.
// - A `user-message` for a turn that is already shown is a replay: the turn is shown again from the start, in its
//   place.
// If the stream and the status disagree for a while (because an event was lost or a server restarted), everything is
// loaded again.
import { Again } from './again.js';
import { ApiError, getHistory, isConversationId, newId, startTurn } from './api.js';
import { withoutFiles } from './files.js';
import { perFrame } from './frame.js';
import * as notify from './notify.js';
import { Outgoing } from './outgoing.js';
import { Press } from './press.js';
import { leaveEdits, release } from './revise.js';
import { WINDOW, getSnapshot } from './snapshot.js';
import { Timeline } from './timeline.js';
import * as transcript from './transcript.js';
import { Watchdog } from './watchdog.js';

const isPrompt = (event) => event.type === 'user-message';
const isSummary = (event) => event.type === 'compaction-started' && event.cause === 'requested';
const isBegin = (event) => isPrompt(event) || event.retryOf !== undefined || isSummary(event);

/** The server's message about a deleted conversation. */
const GONE = /^there is no conversation/;

/** Larger images and PDFs do not fit into one frame, in characters. */
const MOST_BY_SOCKET = 3_000_000;

/** This page can withdraw text, so a broken answer may be streamed again. */
const WITH_REWINDS = { retry: { afterContent: 'rewind' }, extensions: true };

export class Conversation {
  id;
  #name; // the id that our first message asks for; it becomes `id` once the server has made it
  isGone = false; // there is no such conversation
  #socket;
  #model;
  #dock;
  #onChange;
  #onRefused;
  #again;
  #timeline = new Timeline();
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

  /**
   * Without `id`, the conversation is created by its first message. `model()`: the selected model. `onRefused(why)`: a
   * message that was sent without the socket was refused.
   */
  constructor({ id, socket, dock, onChange, onRefused, model }) {
    this.id = id;
    this.#onRefused = onRefused;
    this.#socket = socket;
    this.#dock = dock;
    this.#onChange = onChange;
    this.#again = new Again((turnId, chosen) => this.#askAgain({ turnId, model: chosen }));
    this.#model = model;
    const show = (type) => (dock.pressed = this.#again.pressed = type);
    this.#press = new Press({ command: (type, fields) => this.command(type, fields), onChange: show });
  }

  get isRunning() {
    return this.#replayDue || this.#outgoing.isPending || this.#timeline.isRunning;
  }

  /** Whether there is nothing to show and nothing in progress. */
  get isEmpty() {
    return this.id === undefined && !this.#timeline.turnId && !this.#outgoing.isPending;
  }

  /** Whether it is not known yet if there is such a conversation. */
  get isLoading() {
    return this.#load !== null && !this.#isKnown;
  }

  /** The id of the turn that was streamed last. */
  get turnId() {
    return this.#timeline.turnId;
  }

  /** What its turn waits for: `provider`, `person`, or nothing. */
  get pause() {
    if (this.needsYou) return 'person';
    return this.#dock.isPausing ? 'provider' : undefined;
  }

  /** Whether its turn waits only for people. */
  get needsYou() {
    return this.#status === 'queued';
  }

  /** When its wait ends, by the server's clock; undefined if it does not wait. */
  get waitsUntil() {
    return this.#dock.waitsUntil;
  }

  /** The rest of its wait in a few characters; undefined if it does not wait. */
  get left() {
    return this.#dock.left;
  }

  /** The subject, as far as it is known: the last prompt. */
  get prompt() {
    return this.#timeline.prompt && withoutFiles(this.#timeline.prompt);
  }

  /** Whether it was asked to stop and is still running. */
  get isStopping() {
    return this.#press.type === 'chat.stop';
  }

  /** The label of the button pressed while offline; its command is sent after reconnecting. */
  get unsent() {
    return this.#press.unsent;
  }

  /** Loads and shows the conversation. */
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
    // Earlier turns are in history; the running one is replayed completely.
    const last = this.#inbox.findLast(isBegin);
    const running = this.#inbox.findIndex((event) => isBegin(event) && event.turnId === last.turnId); // a summary that is made again has two
    this.#inbox = isRunning && running >= 0 ? this.#inbox.slice(running) : [];
    this.#replayDue = isRunning && running < 0;
    this.#wasIdle = !isRunning;
    this.#status = status.status;
    this.#again.offer(null);
    this.#dock.hide();
    this.#dock.restore(status.retry);
    notify.over(this.id, status.status);
    const older = window.chunks[0]?.seq > 1 ? [transcript.olderButton(() => this.#loadOlder())] : [];
    this.#timeline.show(this.id, window, older, this.#outgoing.nodes);
    this.#takeInbox();
  }

  /** Loads older chunks. Resolves to whether there are more. */
  async #loadOlder() {
    const { oldest } = this.#timeline;
    try {
      const window = await getHistory(this.id, WINDOW, oldest);
      if (oldest !== this.#timeline.oldest) return true; // it was loaded again meanwhile
      this.#timeline.prepend(window);
      return window.chunks.length > 0 && this.#timeline.oldest > 1;
    } catch {
      return true;
    }
  }

  /** The connection was established. */
  resume() {
    if (!this.id) return;
    this.#subscribed = false;
    // The server has every event of a running turn, but perhaps not those after a sealed turn. A pressed button is sent
    // again only if its target still exists, which is known after the replay.
    const isRunning = this.#cursor !== undefined && !this.#load && this.#timeline.isRunning;
    if (!isRunning || this.#press.type) return void this.load();
    this.#resumed = true;
    this.#subscribed = this.command('chat.subscribe', { cursor: this.#cursor, extensions: true });
  }

  /** The connection was lost. History can still be shown, and the pressed button's command may not have arrived. */
  disconnected() {
    this.#press.lose();
    if (this.id && !this.#wasLoaded) this.load();
  }

  /** The conversation is closed on the page. */
  leave() {
    this.#left = true;
    this.#watchdog.rest();
    if (this.#subscribed && !this.isUnconfirmed) this.unsubscribe();
    this.#press.drop();
    this.#dock.hide();
    leaveEdits(this.id);
  }

  /** Whether something was sent that the server has not confirmed. */
  get isUnconfirmed() {
    return this.#outgoing.isUnconfirmed;
  }

  /** Handles an event that came after the conversation was closed. */
  receiveLate(event) {
    if (isBegin(event)) this.#outgoing.begun();
    this.#outgoing.receive(event);
  }

  unsubscribe() {
    this.#socket.send({ type: 'chat.unsubscribe', conversationId: this.id ?? this.#name });
  }

  /** Whether a message of the server is about this conversation. */
  isOf(id) {
    return id === (this.id ?? this.#name);
  }

  /** The id of the conversation that the first message created. */
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

  /** Handles a status sent to all clients. */
  statusChanged(status) {
    this.#status = status;
    if (this.isGone) this.load(); // somebody made it meanwhile
    this.#check();
  }

  /** The server refused a command. Returns true if this was handled and the user need not be told elsewhere. */
  refused(why) {
    const wasAgain = this.#press.type === 'chat.retry' && !this.#press.isRevision;
    this.#press.drop();
    release();
    if (wasAgain) this.#again.refused(why);
    if (GONE.test(why)) this.#vanish();
    else if (this.#resumed) this.load(); // our cursor is not known any more
    return wasAgain || this.isGone || this.#load !== null; // the answers of the load tell
  }

  /** Starts a turn; `modelSettings`: what a new conversation sets for its model. Returns false if there is no connection, or the conversation is not loaded yet. */
  send(message, model, images = [], modelSettings) {
    if (this.id !== undefined && !this.#isKnown) return false; // the server would make one of this name
    const pictures = images.length > 0 && { images: images.map(({ url, mimeType }) => ({ url, mimeType })) };
    this.#name = this.id ?? newId();
    const command = { type: 'chat.send', conversationId: this.#name, message, model, modelSettings, ...pictures, ...WITH_REWINDS };
    const isLarge = images.reduce((sum, { url }) => sum + url.length, 0) > MOST_BY_SOCKET;
    if (isLarge ? !this.#socket.isOpen : !this.#socket.send(command)) return false;
    this.#resumed = false;
    this.#again.offer(null);
    this.#outgoing.prompt(message, images);
    if (isLarge) this.#upload(command);
    this.#onChange();
    return true;
  }

  /** Sends a message that is too large for the socket, which has its events all the same. */
  async #upload({ type, ...message }) {
    try {
      const cursor = await startTurn(message);
      if (this.#left) this.#outgoing.begun();
      else if (!this.id) this.#socket.send({ type: 'chat.subscribe', conversationId: this.#name, cursor, extensions: true });
    } catch (error) {
      this.#onRefused(error instanceof ApiError ? error.message : 'The server cannot be reached. It may have received the message: check before sending it again.');
    }
  }

  /** Queues a text for the running turn. Returns false if there is no connection. */
  enqueue(text) {
    this.#resumed = false;
    const messageId = newId();
    const sent = this.command('chat.queue', { text, messageId });
    if (sent) this.#outgoing.queue(messageId, text);
    return sent;
  }

  /** Takes the text and images that were sent but never confirmed, if any: of one refused message, or all. */
  takeBack(isRefusal, messageId) {
    const taken = isRefusal ? this.#outgoing.refused(messageId) : this.#outgoing.takeBack();
    this.#onChange();
    return taken;
  }

  /** Sends a command about this conversation. Returns whether that was possible. */
  command(type, fields = {}) {
    return this.id !== undefined && this.#socket.send({ type, conversationId: this.id, ...fields });
  }

  /** Sends the command of a button, now or after reconnecting. */
  press(type, fields) {
    this.#resumed = false;
    this.#press.give(type, fields, this.#now);
    this.#onChange();
  }

  /** Answers a message again, or an edited version of it: `{ seq, message?, model? }`. */
  revise(what) {
    if (this.isRunning) return release('Not sent: wait until the answer has ended, or stop it.');
    if (!Number.isInteger(what.seq)) return release('Not sent: the message is not stored yet.');
    this.#askAgain({ ...what, turnId: this.#timeline.lastTurn });
  }

  #askAgain(fields) {
    this.press('chat.retry', { ...fields, model: fields.model ?? (this.#model() || undefined), ...WITH_REWINDS });
  }

  /** The state that a button refers to. */
  get #now() {
    const [{ turnId, isRunning, lastTurn }, { stage, retry }] = [this.#timeline, this.#dock];
    return { turnId, isRunning, lastTurn, isPending: this.#outgoing.isPending, stage, retry, unfinished: this.#unfinished };
  }

  #takeInbox() {
    if (this.#load || this.#left) return;
    const events = this.#inbox;
    this.#inbox = [];
    if (events.some(isPrompt) && this.#mayShowIts) return void this.load();
    if (events.some((event) => this.#timeline.mustReload(event))) return void this.load();
    for (const event of events) this.#take(event);
    if (this.#timeline.replacedForNothing) return void this.load();
    this.#timeline.flush(this.#dock.isWaiting);
    this.#again.offer(this.#unfinished);
    if (!this.#replayDue) this.#press.settle(this.#now);
    transcript.settle();
    this.#check();
    this.#onChange();
  }

  /** Whether history may already contain the prompt of a turn that is just beginning. */
  get #mayShowIts() {
    return this.#wasIdle && !this.#outgoing.isPending && this.#timeline.endsWithPrompt;
  }

  #take(event) {
    if (isBegin(event)) this.#begin(event);
    if (isSummary(event)) this.#timeline.receive(event);
    else if (!isBegin(event) && !this.#timeline.receive(event)) return;
    if (event.type === 'status' || event.type === 'turn-sealed') this.#status = event.status ?? 'idle';
    this.#outgoing.receive(event);
    this.#dock.receive(event);
  }

  #begin(event) {
    this.#status = 'active';
    this.#replayDue = this.#wasIdle = false;
    // Events do not contain images, but those of a turn begun here are known.
    if (this.#outgoing.images.length > 0) this.#images.set(event.turnId, this.#outgoing.images);
    this.#outgoing.begun();
    this.#again.offer(null);
    this.#timeline.begin({ ...event, images: this.#images.get(event.turnId) });
  }

  /** The last turn, if it can be repeated. */
  get #unfinished() {
    return this.isRunning ? null : this.#timeline.unfinished;
  }

  #check() {
    const isUnderWay = this.#status === 'active' || this.#status === 'queued';
    const agree = !this.#replayDue && this.#timeline.isRunning === isUnderWay;
    this.#watchdog.observe(agree || this.id === undefined || this.#left);
  }

  #distrust() {
    if (this.#socket.isOpen && !this.#load) this.load();
    else this.#check();
  }
}
