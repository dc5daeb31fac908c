// A panel that is filled from the server whenever it opens.
import { byId } from './element.js';

/** Loads the panel `id` when it opens, tells its button whether it is open, and calls `closed` when it closes. */
export function panel(id, load, closed = () => {}) {
  const shown = byId(id);
  const button = byId(`${id}-button`);
  shown.addEventListener('beforetoggle', ({ newState }) => newState === 'open' && load());
  shown.addEventListener('toggle', ({ newState }) => {
    button.ariaExpanded = String(newState === 'open');
    if (newState !== 'open') closed();
  });
  return { button, isOpen: () => shown.matches(':popover-open'), close: () => shown.hidePopover() };
}
