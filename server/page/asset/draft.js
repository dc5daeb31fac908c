// Unsent texts, per conversation. They survive a reload.

const KEY = 'everturn.draft.';

/** Keeps a text; removes it if empty. `id` is undefined for a new conversation. */
export function keepDraft(id, text) {
  try {
    if (text) localStorage.setItem(KEY + (id ?? ''), text);
    else localStorage.removeItem(KEY + (id ?? ''));
  } catch {
    // The storage is full, so the text lasts only as long as the field.
  }
}

/** The kept text. */
export function draftOf(id) {
  try {
    return localStorage.getItem(KEY + (id ?? '')) ?? '';
  } catch {
    return ''; // the browser keeps nothing
  }
}
