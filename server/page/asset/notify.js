// An optional browser notification when a long wait ends.
import { byId } from './element.js';
import { toast } from './toast.js';

const button = byId('notify');

/** Minimum wait for a notification. */
const LONG_MS = 30_000;

/** A replay tells of earlier waits, too: one is over if none follows within so many milliseconds. */
const SETTLES_MS = 500;

const SAYS = {
  answering: 'The provider answers again.',
  failed: 'The provider could not be reached. The turn gave up.',
  queued: 'A tool call needs your answer.',
  over: 'The turn is over.',
};

const wanted = new Map(); // by conversation: its title, and the timer that tells the end
let here; // the open conversation

/** Another conversation is open. */
export function of(id) {
  here = id;
}

button.addEventListener('click', async () => {
  const [id, title] = [here, byId('title').textContent];
  if (!wanted.has(id) && Notification.permission === 'default') await Notification.requestPermission();
  if (Notification.permission !== 'granted') {
    toast('This browser does not allow notifications for this page.', 'message');
    return;
  }
  if (!wanted.delete(id)) wanted.set(id, { title });
  mark();
});

/** Offers a notification during a wait of this length. */
export function offer(delayMs) {
  clearTimeout(wanted.get(here)?.timer);
  mark();
  button.hidden = !wanted.has(here) && !(delayMs >= LONG_MS && 'Notification' in window);
}

/** The retries of the open conversation ended: `outcome` is `answering`, `failed`, or nothing if a person ended them. */
export function ended(outcome) {
  button.hidden = true;
  const [id, one] = [here, wanted.get(here)];
  if (one) one.timer = setTimeout(() => tell(id, SAYS[outcome]), SETTLES_MS);
}

/** A turn of which no events were seen ended, or needs somebody, as its conversation's `status` says. */
export function over(id, status) {
  if (status !== 'active') tell(id, SAYS[status] ?? SAYS.over);
}

function tell(id, says) {
  const { title, timer } = wanted.get(id) ?? {};
  clearTimeout(timer);
  if (!wanted.delete(id) || !says) return;
  try {
    const note = new Notification(title, { body: says, icon: 'page/icon.svg', tag: 'everturn' });
    note.onclick = () => {
      window.focus();
      note.close();
    };
  } catch {
    toast(says, 'message'); // phones notify for installed pages alone
  }
}

/** Shows on the button whether a notification will come. */
function mark() {
  const on = wanted.has(here);
  button.setAttribute('aria-pressed', String(on));
  button.textContent = on ? 'You will be notified' : 'Notify me when this is over';
}
