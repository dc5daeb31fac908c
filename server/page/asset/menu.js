// The menu of a conversation: pin, archive, rename, export, delete.
import { byId, element } from './element.js';

const menu = byId('conversation-menu');

/** Makes a button open the menu for the value of `subject()`. `actions`: `[[label, act(subject)], …]`; a label may be a function, too. */
export function opensMenu(button, subject, actions) {
  button.setAttribute('aria-haspopup', 'menu');
  button.addEventListener('click', (event) => {
    event.preventDefault();
    const name = (label) => (typeof label === 'function' ? label(subject()) : label);
    show(button, actions.map(([label, act]) => item(name(label), () => act(subject()))));
  });
}

function item(label, act) {
  const button = element('button', { type: 'button', role: 'menuitem', tabIndex: -1 }, label);
  button.addEventListener('click', () => {
    menu.hidePopover();
    act();
  });
  return button;
}

function show(button, items) {
  if (menu.matches(':popover-open')) menu.hidePopover();
  menu.replaceChildren(...items);
  menu.showPopover();
  const { left, right, bottom, top } = button.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const isBelow = bottom + height + 8 <= innerHeight;
  menu.style.left = `${Math.max(8, Math.min(right - width, innerWidth - width - 8, Math.max(left, 8)))}px`;
  menu.style.top = `${isBelow ? bottom + 4 : Math.max(8, top - height - 4)}px`;
  opener = button;
  items[0].focus();
}

let opener = null;

menu.addEventListener('toggle', ({ newState }) => {
  if (newState === 'closed' && (menu.contains(document.activeElement) || document.activeElement === document.body)) opener?.focus();
});

menu.addEventListener('keydown', (event) => {
  const items = [...menu.children];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (event.key === 'Tab') menu.hidePopover();
  if (to === undefined) return;
  event.preventDefault();
  items.at(to % items.length).focus();
});

export const isMenuOpen = () => menu.matches(':popover-open');
