// The page: wires the list, the open conversation, the composer and the socket together.
import { clockAhead } from './api.js';
import { Banner } from './banner.js';
import { Composer, Queue } from './composer.js';
import { Conversation } from './conversation.js';
import { isDrawerOpen, setDrawer } from './drawer.js';
import { byId } from './element.js';
import { ConversationList } from './list.js';
import { Socket } from './socket.js';
import { toast } from './toast.js';
import * as transcript from './transcript.js';

const SAMPLE = 'Roll two dice, and tell me what you survived on the way.';

const list = new ConversationList({ onLoad: render });
const composer = new Composer({ onSubmit: submit, onStop: stop });
const banner = new Banner({
  onRetryNow: () => open.command('retry.now'),
  onCancel: () => open.command('retry.abort'),
  clockAhead: () => clockAhead,
});
const queue = new Queue({ onCancel: (messageId) => open.command('chat.queue.cancel', { messageId }) });
const socket = new Socket({ onMessage: receive, onOpen: connected, onDown: disconnected });
let open = null; // the conversation that is shown
let wasTried = false; // to connect the socket

/** `#/c/<id>` is a conversation, anything else a new one. */
function route() {
  const id = /^#\/c\/([\w.:-]{1,128})$/.exec(location.hash)?.[1];
  setDrawer(false);
  if (open && open.id === id && (id || open.isEmpty)) return;
  open?.leave();
  open = new Conversation({ id, socket, banner, queue, onChange: render, onTryAgain: submit });
  transcript.clear();
  list.mark(id);
  if (socket.isOpen) open.resume();
  else if (wasTried) open.showStored();
  if (!id) composer.focus();
  render();
}

function render() {
  composer.running = open.isRunning;
  byId('welcome').hidden = !open.isEmpty;
  const title = (open.id && (list.titleOf(open.id) || open.prompt)) || 'New conversation';
  if (byId('title').textContent !== title) byId('title').textContent = title;
  const page = open.id ? `${title} · Everturn` : 'Everturn';
  if (document.title !== page) document.title = page;
}

/** Sends or queues a text. Whether it was taken. */
function submit(text) {
  if (open.isRunning && !open.id) return false; // its conversation is being made
  const taken = open.isRunning ? open.enqueue(text) : open.send(text, composer.model);
  if (!taken) toast('Not connected: the message stays here until the connection is back.');
  return taken;
}

function stop() {
  open.command('chat.stop');
}

function receive(message) {
  const id = message.conversationId ?? message.event?.conversationId;
  switch (message.type) {
    case 'chat.delta':
      // Nothing else is subscribed to: an unknown conversation is the one that our first message made.
      if (!open.id && open.isRunning && message.event.type === 'user-message') adopt(id);
      if (id === open.id) open.receive(message.event, message.cursor);
      return;
    case 'conversation.statusChanged':
      list.statusChanged(id, message.status);
      if (id === open.id) open.statusChanged(message.status);
      return;
    case 'chat.error':
      if (id !== undefined && id !== open.id) return;
      if (!open.refused()) toast(message.message);
      return giveBack();
    case 'error':
      return toast(message.message);
  }
}

function adopt(id) {
  open.adopt(id);
  history.replaceState(null, '', `#/c/${id}`);
  list.mark(id);
}

/** A text that was sent but not taken goes back into the field. */
function giveBack() {
  const text = open.takeBack();
  if (text && !composer.text) composer.text = text;
  return text !== '';
}

function connected() {
  wasTried = true;
  byId('connection').textContent = '';
  document.body.classList.remove('offline');
  open.resume();
  list.load();
  if (!composer.model) composer.loadModels().catch(() => {});
}

function disconnected() {
  wasTried = true;
  open.showStored();
  document.body.classList.add('offline');
  byId('connection').textContent = 'Reconnecting…';
  if (giveBack()) toast('The connection broke while the message was sent. It may not have arrived.');
  list.load(); // asks for the token, should it be that
}

document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || byId('token').open) return;
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
