// What was written and not sent, for each conversation.

const drafts = new Map();

/** Keeps a text; `id` is undefined for a new conversation. */
export function keepDraft(id, text) {
  if (text) drafts.set(id, text);
}

/** The text that was kept, once. */
export function takeDraft(id) {
  const text = drafts.get(id) ?? '';
  drafts.delete(id);
  return text;
}
