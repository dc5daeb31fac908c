// The conversation list as a drawer on narrow screens.
import { byId } from './element.js';

const drawer = byId('drawer');
const scrim = byId('scrim');
const menu = byId('menu');
const narrow = matchMedia('(max-width: 760px)');

/** Opens or closes the drawer. On a wide screen, the list is always visible. */
export function setDrawer(open) {
  const wasOpen = document.body.classList.contains('drawer-open');
  const isOpen = narrow.matches && open;
  document.body.classList.toggle('drawer-open', isOpen);
  drawer.inert = narrow.matches && !isOpen;
  scrim.hidden = !isOpen;
  menu.ariaExpanded = String(isOpen);
  if (isOpen) byId('new').focus();
  else if (wasOpen && narrow.matches) menu.focus();
}

export const isDrawerOpen = () => document.body.classList.contains('drawer-open');

menu.addEventListener('click', () => setDrawer(!isDrawerOpen()));
scrim.addEventListener('click', () => setDrawer(false));
narrow.addEventListener('change', () => setDrawer(false));
setDrawer(false);
