// Keyboard shortcuts, and the dialog that lists them.
import { byId, element } from './element.js';

const dialog = byId('shortcuts');
const isMac = /mac|iphone|ipad/i.test(navigator.platform);
const COMMAND = isMac ? '⌘' : 'Ctrl';

/** The keys, their description, and the name of the action; without one they are handled elsewhere. */
const SHORTCUTS = [
  [['Enter'], 'Send the message'],
  [['Shift', 'Enter'], 'New line'],
  [['Esc'], 'Stop the answer (asks before it ends a wait)'],
  [['/'], 'Write a message', 'write'],
  [[COMMAND, 'K'], 'Search conversations (↓ ↑ select, Enter opens)', 'search'],
  [[COMMAND, 'Shift', 'O'], 'New conversation', 'begin'],
  [['Alt', '↓'], 'Next conversation', 'next'],
  [['Alt', '↑'], 'Previous conversation', 'previous'],
  [['?'], 'Show this list', 'help'],
];

function nameOf(event) {
  const { key, altKey, shiftKey, target } = event;
  const hasCommand = isMac ? event.metaKey : event.ctrlKey;
  const isWriting = target.matches?.('input:not([type=checkbox], [type=radio]), textarea, select');
  if (hasCommand && !altKey && !shiftKey && key.toLowerCase() === 'k') return 'search';
  if (hasCommand && shiftKey && key.toLowerCase() === 'o') return 'begin';
  if (event.ctrlKey || event.metaKey) return undefined;
  const isBlank = target.matches?.('input, textarea') && target.value === '';
  // On a Mac, Option and an arrow move within a text.
  if (altKey) return isWriting && !isBlank ? undefined : { ArrowDown: 'next', ArrowUp: 'previous' }[key];
  return isWriting ? undefined : { '/': 'write', '?': 'help' }[key];
}

/** `actions`: handlers for `write`, `search`, `begin`, `next` and `previous`. */
export function obey(actions) {
  const all = { ...actions, help: () => dialog.showModal() };
  const rows = SHORTCUTS.map(([keys, does]) =>
    element('div', {}, element('dt', {}, ...keys.map((key) => element('kbd', {}, key))), element('dd', {}, does)),
  );
  dialog.querySelector('dl').replaceChildren(...rows);
  byId('help').addEventListener('click', all.help);
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return;
    const name = nameOf(event);
    if (!name) return;
    event.preventDefault();
    all[name]();
  });
}
