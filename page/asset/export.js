// Exports a conversation to a file: all stored data as JSON, or the messages as Markdown.
import { getChunksAfter } from './api.js';
import { element } from './element.js';

/** Starts the download. `format`: `json` or `markdown`. */
export async function download(conversation, format) {
  const stored = await readAll(conversation.id);
  const isJson = format === 'json';
  const { id, title, createdAt, lastActivityAt } = conversation;
  const facts = { id, title, createdAt, lastActivityAt };
  const text = isJson ? `${JSON.stringify({ conversation: facts, ...stored }, null, 2)}\n` : markdown(title, stored.chunks);
  const file = new Blob([text], { type: isJson ? 'application/json' : 'text/markdown' });
  const link = element('a', { href: URL.createObjectURL(file), download: `${fileName(title)}.${isJson ? 'json' : 'md'}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** All chunks and turns, one window at a time. */
async function readAll(id) {
  const chunks = [];
  const turns = new Map();
  for (let more = true; more; ) {
    const window = await getChunksAfter(id, chunks.at(-1)?.seq ?? 0);
    chunks.push(...window.chunks);
    for (const turn of window.turns ?? []) turns.set(turn.turnId, turn);
    more = window.more === true && window.chunks.length > 0;
  }
  return { chunks, turns: [...turns.values()] };
}

const fileName = (title) => title.replaceAll(/[^\p{L}\p{N}]+/gu, '-').replaceAll(/^-+|-+$/g, '').slice(0, 60) || 'conversation';

const WHO = { user: 'You', assistant: 'Assistant', tool: 'Assistant' };

function markdown(title, chunks) {
  const parts = [`# ${title || 'Conversation'}`];
  let last;
  for (const { role, chunk } of standing(chunks)) {
    const text = said(chunk);
    if (!text || !WHO[role]) continue;
    if (WHO[role] !== last) parts.push(`## ${(last = WHO[role])}`);
    parts.push(text);
  }
  return `${parts.join('\n\n')}\n`;
}

/** The chunks that are not superseded. */
function standing(chunks) {
  const kept = [];
  for (const each of chunks) {
    if (each.supersedes !== undefined) while (kept.at(-1)?.seq >= each.supersedes) kept.pop();
    kept.push(each);
  }
  return kept;
}

function said(chunk) {
  switch (chunk.type) {
    case 'text':
      return chunk.text.trim();
    case 'tool-call':
      return `**${chunk.toolName}**\n\n${fence(JSON.stringify(chunk.input, null, 2), 'json')}`;
    case 'tool-result':
      return fence(chunk.content);
    case 'error':
      return fence(chunk.message);
    case 'image':
      return chunk.url.startsWith('data:') ? '*(image)*' : `![image](${chunk.url})`;
    default:
      return '';
  }
}

/** Code, between fences longer than any inside it. */
function fence(text, language = '') {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
  const marks = '`'.repeat(longest + 1);
  return `${marks}${language}\n${text}\n${marks}`;
}
