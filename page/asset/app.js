// The page: wires the list, the open conversation, the composer and the socket together.
import { Allowed } from './allowed.js';
import { answerApproval, clockAhead, getAttempts } from './api.js';
import * as approval from './approval.js';
import { provide } from './attempts.js';
import { Banner } from './banner.js';
import { Composer, Queue } from './composer.js';
import { Conversation } from './conversation.js';
import { Dock } from './dock.js';
import { keepDraft, takeDraft } from './draft.js';
import { isDrawerOpen, setDrawer } from './drawer.js';
import { byId } from './element.js';
import { ConversationList } from './list.js';
import { listen } from './revise.js';
import { Settings } from './settings.js';
import { Silence } from './silence.js';
import { Socket } from './socket.js';
import { Targets } from './targets.js';
import { dismiss, toast } from './toast.js';
import { Tools } from './tools.js';
import * as transcript from './transcript.js';

const SAMPLE = 'Roll two dice, and tell me what you survived on the way.';

const list = new ConversationList({ onLoad: render });
const targets = new Targets();
const settings = new Settings({ conversationId: () => (open.isGone ? undefined : open.id), model: () => composer.model });
const allowed = new Allowed();
const tools = new Tools();
const composer = new Composer({ onSubmit: submit, onStop: stop });
const banner = new Banner({
  onRetryNow: (model) => {
    if (model) composer.follow(model);
    open.press('retry.now', model && { model });
  },
  onCancel: () => open.press('retry.abort'),
  clockAhead: () => clockAhead,
});
const silence = new Silence({ onAskAgain: () => open.press('retry.now'), clockAhead: () => clockAhead });
const queue = new Queue({ onCancel: unqueue });
const dock = new Dock({ banner, silence, queue });
const socket = new Socket({ onMessage: receive, onOpen: connected, onDown: disconnected });
listen((what) => {
  if (what.model) composer.follow(what.model);
  open.revise(what);
});
approval.listen(async (answer) => (await answerApproval(open.id, answer)).answered);
provide((turnId) => getAttempts(open.id, turnId));
let open = null; // the conversation that is shown
let wasTried = false; // to connect the socket

/** `#/c/<id>` is a conversation, anything else a new one. */
function route() {
  const id = /^#\/c\/(.+)$/.exec(location.hash)?.[1];
  setDrawer(false);
  if (open && open.id === id && (id || open.isEmpty)) return;
  if (open) {
    open.leave();
    keepDraft(open.id, composer.text);
    dismiss('message');
  }
  open = new Conversation({ id, socket, dock, onChange: render, model: () => composer.model });
  composer.text = takeDraft(id);
  transcript.clear();
  list.mark(id);
  allowed.of(id);
  if (socket.isOpen) open.resume();
  else if (wasTried) open.disconnected();
  if (!id) composer.focus();
  render();
}

function render() {
  composer.show(open);
  if (!socket.isOpen && wasTried) tellConnection();
  byId('transcript').classList.toggle('settled', !open.isRunning);
  byId('welcome').hidden = !open.isEmpty;
  const known = open.id && (list.titleOf(open.id) || open.prompt);
  const title = known || (open.isGone ? 'Conversation not found' : 'New conversation');
  if (byId('title').textContent !== title) byId('title').textContent = title;
  const needy = list.needy;
  const call = open.needsYou ? 'Needs you · ' : needy > 0 ? `(${needy}) ` : '';
  document.body.classList.toggle('needs-you', needy > 0);
  const page = call + (open.id ? `${title} · Everturn` : 'Everturn');
  if (document.title !== page) document.title = page;
}

/** Sends or queues a text. Whether it was sent. */
function submit(text) {
  if (open.isRunning && !open.id) return false; // its conversation is being made
  const taken = open.isRunning ? open.enqueue(text) : open.send(text, composer.model);
  if (taken) dismiss('message');
  else if (!open.isGone) toast('Not connected. Your message was not sent.', 'connection');
  return taken;
}

function stop() {
  open.press('chat.stop');
}

function unqueue(messageId) {
  const sent = open.command('chat.queue.cancel', { messageId });
  if (!sent) toast('Not connected. The message is still queued.', 'connection');
}

function receive(message) {
  const id = message.conversationId ?? message.event?.conversationId;
  switch (message.type) {
    case 'chat.delta':
      targets.receive(message.event);
      // Nothing else is subscribed to: an unknown conversation is the one that our first message made.
      if (!open.id && open.isRunning && message.event.type === 'user-message') adopt(id);
      if (id !== open.id) return;
      allowed.receive(message.event);
      return open.receive(message.event, message.cursor);
    case 'conversation.statusChanged':
      list.statusChanged(id, message.status);
      if (id === open.id) open.statusChanged(message.status);
      return render();
    case 'retry.settingsChanged':
      return settings.changed();
    case 'chat.error':
      if (id !== undefined && id !== open.id) return;
      if (!open.refused(message.message)) toast(message.message, 'message');
      return giveBack();
    case 'error':
      return toast(message.message, 'message');
  }
}

function adopt(id) {
  open.adopt(id);
  allowed.of(id);
  history.replaceState(null, '', `#/c/${id}`);
  list.mark(id);
}

/** Puts a text back into the field that was sent and not accepted. */
function giveBack() {
  const text = open.takeBack();
  if (text && !composer.text) composer.text = text;
  return text !== '';
}

function connected() {
  wasTried = true;
  byId('connection').textContent = '';
  dismiss('connection');
  document.body.classList.remove('offline');
  open.resume();
  list.load();
  targets.load();
  tools.load();
  allowed.load();
  if (!composer.model) composer.loadModels().catch(() => {});
}

function disconnected() {
  wasTried = true;
  open.disconnected();
  document.body.classList.add('offline');
  tellConnection();
  if (giveBack()) toast('Connection lost while sending. Your message may not have arrived.', 'message');
  list.load(); // asks for the token, should it be that
}

function tellConnection() {
  const text = open.unsent ? `Reconnecting… “${open.unsent}” will be sent.` : 'Reconnecting…';
  if (byId('connection').textContent !== text) byId('connection').textContent = text;
}

document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || byId('token').open) return;
  if (settings.isOpen || allowed.isOpen || tools.isOpen) return; // Escape closes it
  if (isDrawerOpen()) setDrawer(false);
  else if (open.isRunning) stop();
});
byId('sample').textContent = `Try: “${SAMPLE}”`;
byId('sample').addEventListener('click', () => submit(SAMPLE));
byId('new').addEventListener('click', () => setTimeout(() => composer.focus()));
addEventListener('hashchange', route);

route();
// First by HTTP: there a server that wants a token can say so.
await Promise.allSettled([composer.loadModels(), list.load()]);
socket.connect();
