// Loads the page again if one of its modules did not arrive, because none of them runs then.

const KEY = 'everturn.starts';
/** Pauses before it is loaded again, in milliseconds. */
const AGAIN_MS = [200, 800, 3000];

let isWhole = true;

// Such errors do not bubble.
addEventListener('error', ({ target }) => target instanceof HTMLScriptElement && again(), { capture: true });
addEventListener('load', () => isWhole && sessionStorage.removeItem(KEY));

function again() {
  isWhole = false;
  const starts = Number(sessionStorage.getItem(KEY));
  if (starts >= AGAIN_MS.length) return;
  sessionStorage.setItem(KEY, starts + 1);
  setTimeout(() => location.reload(), AGAIN_MS[starts]);
}
