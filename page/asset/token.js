// The bearer token of servers that ask for one. Kept for this tab only.
import { byId } from './element.js';

const KEY = 'everturn.token';
let asking = null;

/** Headers that prove who we are; none without a token. */
export function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { authorization: `Bearer ${token}` } : {};
}

/** The same for a WebSocket, which can send no headers: the token goes as a subprotocol. */
export function protocols() {
  const token = sessionStorage.getItem(KEY);
  if (!token) return [];
  const binary = String.fromCharCode(...new TextEncoder().encode(token));
  const url = btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return ['everturn', `bearer.${url}`];
}

/** Asks the person for the token; one dialog, however many requests were refused. `refused`: what they were sent with. */
export function ask(refused) {
  const known = headers().authorization;
  if (known && known !== refused) return Promise.resolve(); // given meanwhile
  asking ??= new Promise((resolve) => {
    const dialog = byId('token');
    const field = byId('token-field');
    if (refused) byId('token-note').textContent = 'Token not accepted. Try again.';
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
  return asking;
}
