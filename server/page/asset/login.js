// A login at an MCP server, begun with a button.
import { beginLogin } from './api.js';
import { element } from './element.js';
import { oneLine } from './visible.js';

/** Maximum number of characters of an error. */
const LONGEST = 600;

/** Opens the login page of a server. `place` shows what comes of it. Returns whether the login has begun. */
export async function openLogin(name, place) {
  // Opened at once, as browsers allow that only while a button is pressed.
  const opened = window.open('', '_blank');
  try {
    const { url } = await beginLogin(name);
    if (opened) {
      opened.opener = null;
      opened.location = url;
    }
    const again = element('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, 'Open the login page');
    place.replaceChildren('Log in on the page that has opened. ', again);
    return true;
  } catch (error) {
    opened?.close();
    place.replaceChildren(oneLine(error.message, LONGEST));
    return false;
  }
}

/** The button that opens the login page, and a place for what comes of it. */
export function loginButton(name, kind = '', act = (place) => openLogin(name, place)) {
  const place = element('span', { role: 'status' });
  const made = element('button', { type: 'button', className: `button ${kind}`.trim(), ariaLabel: `Log in at ${name}` }, 'Log in');
  made.addEventListener('click', () => act(place));
  return element('p', { className: 'login' }, made, ' ', place);
}
