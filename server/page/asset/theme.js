// The colours: light, dark, or the system's. Kept in this browser.
import { byId } from './element.js';

const KEY = 'everturn.theme';
const choice = byId('theme');

function apply() {
  if (choice.value) document.documentElement.dataset.theme = choice.value;
  else delete document.documentElement.dataset.theme;
}

choice.value = localStorage.getItem(KEY) ?? '';
if (choice.selectedIndex < 0) choice.value = '';
apply();
choice.addEventListener('change', () => {
  if (choice.value) localStorage.setItem(KEY, choice.value);
  else localStorage.removeItem(KEY);
  apply();
});
// Another tab may have changed it.
addEventListener('storage', ({ key, newValue }) => {
  if (key !== KEY) return;
  choice.value = newValue ?? '';
  apply();
});
