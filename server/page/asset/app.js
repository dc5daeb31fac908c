// The page: connects the list, the open conversation, the composer and the socket.
import { Allowed } from './allowed.js';
import { answerApproval, answerQuestion, clockAhead, getAttempts } from './api.js';
import * as approval from './approval.js';
import { confirm } from './ask.js';
import { provide } from './attempts.js';
import { Banner } from './banner.js';
import { Callers } from './callers.js';
import { Calls } from './calls.js';
import { Composer, Queue } from './composer.js';
import { Conversation } from './conversation.js';
import { Dock } from './dock.js';
import { draftOf, keepDraft } from './draft.js';
import { isDrawerOpen, setDrawer } from './drawer.js';
import { byId } from './element.js';
import { Instructions } from './instructions.js';
import { ConversationList } from './list.js';
import { actions } from './manage.js';
import { isMenuOpen, opensMenu } from './menu.js';
import * as notify from './notify.js';
import { joined } from './outgoing.js';
import { Providers } from './providers.js';
import * as question from './question.js';
import { listen } from './revise.js';
import { Settings } from './settings.js';
import { obey } from './shortcuts.js';
import { Silence } from './silence.js';
import { Socket } from './socket.js';
import { Targets } from './targets.js';
import './theme.js';
import { dismiss, toast } from './toast.js';
import { Nodes } from './nodes.js';
import { Tools } from './tools.js';
import * as transcript from './transcript.js';
import { Usage } from './usage.js';

/** What is asked before a key ends a pause of the turn. */
const QUESTIONS = {
  provider: { text: 'It continues by itself when the provider answers. If you stop it, you can try again, but the wait so far is lost.' },
  person: { text: 'A tool call is waiting for your answer. If you stop the turn, the call is not made.' },
};

const SAMPLE = 'Roll two dice, and tell me what you survived on the way.';

const manageable = actions({
  onRenamed: (id, title) => {
    list.renamed(id, title);
    render();
  },
  onDeleted: (id) => {
    list.deleted(id);
    keepDraft(id, '');
    if (id === open.id) location.hash = '#/';
  },
});
const list = new ConversationList({ onLoad: render, actions: manageable });
opensMenu(byId('conversation-button'), () => list.find(open.id) ?? { id: open.id, title: open.prompt ?? '' }, manageable);
const targets = new Targets();
const calls = new Calls();
const settings = new Settings({ conversationId: () => (open.isGone ? undefined : open.id), model: () => composer.model });
const allowed = new Allowed();
const instructions = new Instructions();
const tools = new Tools();
const nodes = new Nodes();
new Usage();
new Callers();
new Providers({
  onChange: async (model) => {
    const where = open;
    await composer.loadModels(model).catch(() => {}); // its error is shown with the next attempt
    if (model) models.set(where.id, model);
    modelOf = model && where === open ? open : null;
    render();
  },
});
const composer = new Composer({ onSubmit: submit, onStop: stop, onModel: (model) => models.set(open.id, model), onText: (text) => open && keepDraft(open.id, text) });
const banner = new Banner({
  onRetryNow: (model) => {
    if (model) composer.follow(model);
    open.press('retry.now', model && { model });
  },
  onCancel: () => open.press('retry.abort'),
  clockAhead: () => clockAhead,
  onTick: tellTitle,
});
const silence = new Silence({ onAskAgain: () => open.press('retry.now'), clockAhead: () => clockAhead });
const queue = new Queue({ onCancel: unqueue });
const dock = new Dock({ banner, silence, queue });
const socket = new Socket({ onMessage: receive, onOpen: connected, onDown: disconnected });
listen((what) => {
  if (what.model) composer.follow(what.model);
  open.revise(what);
});
question.listen(async (answer) => (await answerQuestion(open.id, answer)).answered);
approval.listen(async (answer) => (await answerApproval(open.id, answer)).answered);
provide((turnId) => getAttempts(open.id, turnId));
let open = null; // the conversation that is shown
const closed = new Set(); // conversations that were left before all that was sent there was confirmed
const models = new Map(); // by conversation: the model that was chosen for it here
let modelOf = null; // the conversation of which the model is shown
let wasTried = false; // to connect the socket
let isDue = false; // whether the message in the field is sent as soon as that is possible

/** `#/c/<id>` is a conversation; anything else is a new one. */
function route() {
  const id = /^#\/c\/(.+)$/.exec(location.hash)?.[1];
  setDrawer(false);
  if (open && open.id === id && (id || open.isEmpty)) return;
  for (const panel of document.querySelectorAll(':popover-open')) panel.hidePopover(); // some are about the conversation that is left
  if (open) {
    open.leave();
    if (open.isUnconfirmed) closed.add(open);
    dismiss('message');
  }
  const made = new Conversation({ id, socket, dock, onChange: render, onRefused: (why) => refused(made, why), model: () => composer.model });
  open = made;
  isDue = false;
  composer.text = draftOf(id);
  composer.images.all = [];
  composer.files.clear();
  transcript.clear();
  list.mark(id);
  allowed.of(id);
  instructions.of(id);
  notify.of(id);
  if (socket.isOpen) open.resume();
  else if (wasTried) open.disconnected();
  if (!id) composer.focus();
  render();
}

function render() {
  composer.show(open);
  if (!socket.isOpen && wasTried) tellConnection();
  byId('transcript').classList.toggle('settled', !open.isRunning);
  transcript.settle(); // the buttons below answers take space
  byId('welcome').hidden = !open.isEmpty;
  byId('first').hidden = !composer.hasOnlyDemo;
  byId('conversation-button').hidden = open.id === undefined || open.isGone;
  if (open.id) list.waits(open.id, open.waitsUntil);
  const known = open.id && (list.titleOf(open.id) || open.prompt);
  const title = known || (open.isGone ? 'Conversation not found' : 'New conversation');
  if (byId('title').textContent !== title) byId('title').textContent = title;
  showModel();
  tellTitle();
  sendDue();
}

/** The model of the conversation's last turn is preselected, unless another was chosen. */
function showModel() {
  if (modelOf === open || !composer.hasModels) return;
  const model = (open.id && models.get(open.id)) ?? list.find(open.id)?.model;
  if (open.id !== undefined && model === undefined) return composer.pickNone(); // not known yet, or an old conversation
  composer.pick(model);
  modelOf = open;
}

/** The title of the tab: whether someone is needed, the rest of the wait, the subject. */
function tellTitle() {
  if (!open) return;
  const title = byId('title').textContent;
  const needy = list.needy;
  const call = open.needsYou ? 'Needs you · ' : needy > 0 ? `(${needy}) ` : '';
  document.body.classList.toggle('needs-you', needy > 0);
  const left = open.left === undefined ? '' : `${open.left} · `;
  const page = call + left + (open.id ? `${title} · Everturn` : 'Everturn');
  if (document.title !== page) document.title = page;
}

/** Sends or queues a text. Returns whether it was sent. */
function submit(text, images = []) {
  if (open.isRunning && !open.id) return false; // its conversation is being made
  if (open.isRunning && images.length > 0) {
    toast('Images and PDFs can be sent when this answer has ended.', 'message');
    return false;
  }
  isDue = !wasTried || (socket.isOpen && open.isLoading); // the page has just been opened
  if (isDue) return false;
  const taken = open.isRunning ? open.enqueue(text) : open.send(text, composer.model, images, instructions.first);
  if (taken) dismiss('message');
  else if (!open.isGone) toast('Not connected. Your message was not sent.', 'connection');
  return taken;
}

function stop() {
  open.press('chat.stop');
}

/** Stops by a key, which may be pressed by mistake: a wait is ended only after confirmation. */
async function stopByKey() {
  const { turnId, pause } = open;
  if (pause && !(await confirm({ ...QUESTIONS[pause], title: 'Stop this turn?', action: 'Stop', keep: 'Keep waiting' }))) return;
  if (open.isRunning && open.turnId === turnId) stop();
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
      for (const each of closed) if (each.isOf(id)) each.receiveLate(message.event);
      forget(id);
      if (!open.isOf(id)) return;
      if (!open.id) adopt(id);
      allowed.receive(message.event);
      return open.receive(message.event, message.cursor);
    case 'conversation.statusChanged':
      list.statusChanged(id, message.status);
      if (id === open.id) open.statusChanged(message.status);
      else notify.over(id, message.status);
      return render();
    case 'retry.settingsChanged':
      return settings.changed();
    case 'chat.error':
      for (const each of [open, ...closed]) if (each.isOf(id)) refused(each, message.message, message.messageId);
      return forget(id);
    case 'error':
      return toast(message.message, 'message');
  }
}

function refused(from, why, messageId) {
  const isBack = giveBack(from, from.takeBack(true, messageId));
  if (from === open && !open.refused(why)) toast(why, 'message');
  if (from !== open && isBack) toast(`Not sent${where(from)}: ${why}`, 'message');
}

/** A conversation that was left needs no more events once nothing is unconfirmed. */
function forget(id) {
  for (const each of closed) {
    if (!each.isOf(id) || each.isUnconfirmed) continue;
    closed.delete(each);
    if (!open.isOf(id)) each.unsubscribe();
  }
}

/** In which conversation, if another one is open. */
const where = ({ id, prompt }) => (id === open.id ? '' : ` in “${list.titleOf(id) || prompt || 'New conversation'}”`);

function adopt(id) {
  keepDraft(undefined, '');
  keepDraft(id, composer.text); // written while it was being made
  open.adopt(id);
  allowed.of(id);
  instructions.adopted(id);
  notify.of(id);
  history.replaceState(null, '', `#/c/${id}`);
  list.mark(id);
}

/** Puts what was sent but not accepted back into the field, before what is written there. Returns whether there was something. */
function giveBack({ id }, { text, images }) {
  if (text && id !== open.id) keepDraft(id, joined(text, draftOf(id)));
  else if (text) composer.text = joined(text, composer.text);
  if (images.length > 0 && id === open.id) composer.images.all = [...images, ...composer.images.all];
  return Boolean(text) || images.length > 0;
}

function connected() {
  wasTried = true;
  byId('connection').textContent = '';
  dismiss('connection');
  document.body.classList.remove('offline');
  dock.isOffline = false;
  open.resume();
  list.load();
  targets.load();
  calls.load();
  tools.load();
  nodes.load();
  allowed.load();
  if (!composer.hasModels) composer.loadModels().catch(() => {});
  sendDue();
}

function sendDue() {
  if (!isDue || !socket.isOpen || open.isLoading) return;
  isDue = false;
  composer.submit();
}

function disconnected() {
  wasTried = true;
  if (isDue) toast('Not connected. Your message was not sent.', 'connection');
  isDue = false;
  open.disconnected();
  document.body.classList.add('offline');
  dock.isOffline = true;
  tellConnection();
  for (const each of [open, ...closed]) {
    if (giveBack(each, each.takeBack())) toast(`Connection lost while sending${where(each)}. Your message may not have arrived.`, 'message');
  }
  closed.clear();
  list.load(); // asks for the token, should it be that
}

function tellConnection() {
  const text = open.unsent ? `Reconnecting… “${open.unsent}” will be sent.` : 'Reconnecting…';
  if (byId('connection').textContent !== text) byId('connection').textContent = text;
}

document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || byId('token').open) return;
  if (settings.isOpen || allowed.isOpen || tools.isOpen || nodes.isOpen || isMenuOpen() || document.querySelector('dialog[open]')) return; // Escape closes it
  if (isDrawerOpen()) return setDrawer(false);
  if (!open.isRunning || isOtherField(event.target)) return;
  event.preventDefault(); // else it also closes the question
  stopByKey();
});

/** Whether someone writes or chooses something that is no message; Escape is about that. */
const isOtherField = (node) => node.matches('input, select, textarea:not(#prompt)');

obey({
  write: () => composer.focus(true),
  search: () => {
    setDrawer(true);
    byId('search').focus();
  },
  begin: () => byId('new').click(),
  next: () => go(1),
  previous: () => go(-1),
});

function go(step) {
  const id = list.next(open.id, step);
  if (id) location.hash = `#/c/${id}`;
}

byId('sample').textContent = `Try: “${SAMPLE}”`;
byId('sample').addEventListener('click', () => submit(SAMPLE));
byId('new').addEventListener('click', () => setTimeout(() => composer.focus()));
addEventListener('hashchange', route);
// Models may have been added or removed elsewhere.
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible' && socket.isOpen) composer.loadModels().then(render, () => {});
});

route();
// First over HTTP, where a server can say that it requires a token.
await Promise.allSettled([composer.loadModels(), list.load()]);
render();
socket.connect();
