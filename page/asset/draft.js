// What was written and not sent, for each conversation. It outlives the page.

const KEY = 'everturn.draft.';

/** Keeps a text; an empty one is forgotten. `id` is undefined for a new conversation. */
export function keepDraft(id, text) {
  try {
    if (text) localStorage.setItem(KEY + (id ?? ''), text);
    else localStorage.removeItem(KEY + (id ?? ''));
  } catch {
    // There is no room: then it lasts as long as the field.
  }
}

/** The text that was kept. */
export function draftOf(id) {
  try {
    return localStorage.getItem(KEY + (id ?? '')) ?? '';
  } catch {
    return ''; // the browser keeps nothing
  }
}
