// An optional browser notification when a long wait ends.
import { byId } from './element.js';
import { toast } from './toast.js';

const button = byId('notify');

/** Minimum wait for a notification. */
const LONG_MS = 30_000;

const SAYS = {
  answering: 'The provider answers again.',
  failed: 'The provider could not be reached. The turn gave up.',
};

let wanted = false;

button.addEventListener('click', async () => {
  if (!wanted && Notification.permission === 'default') await Notification.requestPermission();
  if (Notification.permission !== 'granted') {
    toast('This browser does not allow notifications for this page.', 'message');
    return;
  }
  set(!wanted);
});

/** Offers a notification during a wait of this length. */
export function offer(delayMs) {
  if (button.textContent === '') set(false);
  button.hidden = !wanted && !(delayMs >= LONG_MS && 'Notification' in window);
}

/** The retries ended: `outcome` is `answering`, `failed`, or nothing if a person ended them. */
export function ended(outcome) {
  const says = wanted && SAYS[outcome];
  set(false);
  button.hidden = true;
  if (!says) return;
  try {
    const note = new Notification(byId('title').textContent, { body: says, icon: 'page/icon.svg', tag: 'everturn' });
    note.onclick = () => {
      window.focus();
      note.close();
    };
  } catch {
    toast(says, 'message'); // phones notify for installed pages alone
  }
}

function set(on) {
  wanted = on;
  button.setAttribute('aria-pressed', String(on));
  button.textContent = on ? 'You will be notified' : 'Notify me when this is over';
}
