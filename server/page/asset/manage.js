// Actions on a whole conversation.
import { ApiError, deleteConversation, renameConversation } from './api.js';
import { confirm, line } from './ask.js';
import { download } from './export.js';
import * as shelf from './shelf.js';
import { toast } from './toast.js';

const LONGEST_TITLE = 200;

/** The menu entries; a label may depend on the conversation. `onRenamed(id, title)` and `onDeleted(id)` are called after success. */
export const actions = ({ onRenamed, onDeleted }) => [
  [({ id }) => (shelf.isPinned(id) ? 'Unpin' : 'Pin'), ({ id }) => shelf.toggle('pinned', id)],
  [({ id }) => (shelf.isArchived(id) ? 'Return from archive' : 'Archive'), ({ id }) => shelf.toggle('archived', id)],
  ['Rename…', (conversation) => tell(rename(conversation, onRenamed))],
  ['Export as Markdown', (conversation) => tell(download(conversation, 'markdown'))],
  ['Export as JSON', (conversation) => tell(download(conversation, 'jsonl'))],
  ['Delete…', (conversation) => tell(remove(conversation, onDeleted))],
];

async function tell(doing) {
  await doing.catch((error) => toast(error instanceof ApiError ? error.message : 'No answer from the server. Reload the page to see what was changed.', 'message'));
}

async function rename({ id, title }, onRenamed) {
  const asked = { title: 'Rename conversation', label: 'Title', value: title, action: 'Rename', longest: LONGEST_TITLE };
  const wanted = await line(asked);
  if (wanted === null || wanted === title) return;
  onRenamed(id, (await renameConversation(id, wanted)).title);
}

async function remove({ id, title, status }, onDeleted) {
  const runs = status === 'active' || status === 'queued' ? ' Its running answer will be stopped.' : '';
  const text = `“${title || 'Untitled'}” will be deleted for good.${runs}`;
  if (!(await confirm({ title: 'Delete conversation?', text, action: 'Delete' }))) return;
  await deleteConversation(id).catch((error) => {
    if (error.status !== 404) throw error; // gone already
  });
  shelf.gone(id);
  onDeleted(id);
}
