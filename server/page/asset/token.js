// The bearer token of servers that require one. Kept for this tab only.
import { byId } from './element.js';

const KEY = 'everturn.token';
let asking = null;

/** Headers with the token; none if there is no token. */
export function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { authorization: `Bearer ${token}` } : {};
}

/** The same for a WebSocket, which cannot send headers: the token is sent as a subprotocol. */
export function protocols() {
  const token = sessionStorage.getItem(KEY);
  if (!token) return [];
  const binary = String.fromCharCode(...new TextEncoder().encode(token));
  const url = btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return ['everturn', `bearer.${url}`];
}

/**
 * Asks for the token, with one dialog however many requests were refused. `refused`: the token they were sent with; `why`: what the
 * server says of it.
 */
export function ask(refused, why) {
  const known = headers().authorization;
  if (known && known !== refused) return Promise.resolve(); // given meanwhile
  asking ??= unread().then(() => asked(refused, why));
  return asking;
}

/** Waits while a token that was just made is on display: it is shown only once, and must not be covered. */
function unread() {
  const dialog = byId('callers');
  return new Promise((resolve) => (byId('caller-token').hidden ? resolve() : dialog.addEventListener('close', resolve, { once: true })));
}

function asked(refused, why) {
  return new Promise((resolve) => {
    const dialog = byId('token');
    const field = byId('token-field');
    // The rest says how programs send it. A proxy may answer anything.
    const reason = (typeof why === 'string' && why.split(';')[0]) || 'Token not accepted';
    if (refused) byId('token-note').textContent = `${reason[0].toUpperCase()}${reason.slice(1)}. Try another one.`;
    field.value = '';
    dialog.showModal();
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    dialog.addEventListener(
      'close',
      () => {
        sessionStorage.setItem(KEY, field.value.trim());
        field.value = '';
        asking = null;
        resolve();
      },
      { once: true },
    );
  });
}
