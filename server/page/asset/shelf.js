// Which conversations are pinned or archived. Kept in this browser, like drafts.
const KEY = 'everturn.shelf';

/** Maximum number of conversations remembered of each kind; the oldest are forgotten. */
const MOST = 1000;

let shelf = read();
let onChange = () => {};

function read() {
  try {
    const { pinned, archived } = JSON.parse(localStorage.getItem(KEY)) ?? {};
    return { pinned: new Set(pinned), archived: new Set(archived) };
  } catch {
    return { pinned: new Set(), archived: new Set() }; // of another version
  }
}

/** `change()` is called when something is pinned, archived or returned, here or in another tab. */
export function listen(change) {
  onChange = change;
}

addEventListener('storage', ({ key }) => {
  if (key !== KEY) return;
  shelf = read();
  onChange();
});

export const isPinned = (id) => shelf.pinned.has(id);
export const isArchived = (id) => shelf.archived.has(id);

/** Pins or archives a conversation, or takes that back. One that is archived is not pinned. */
export function toggle(kind, id) {
  const is = shelf[kind].has(id);
  forget(id);
  if (!is) shelf[kind].add(id);
  keep();
}

/** A conversation was deleted. */
export function gone(id) {
  if (forget(id)) keep();
}

function forget(id) {
  return [shelf.pinned.delete(id), shelf.archived.delete(id)].includes(true);
}

function keep() {
  const latest = (ids) => [...ids].slice(-MOST);
  localStorage.setItem(KEY, JSON.stringify({ pinned: latest(shelf.pinned), archived: latest(shelf.archived) }));
  onChange();
}
