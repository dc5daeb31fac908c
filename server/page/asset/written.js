// What was written into forms of the transcript, for when they are shown again. It lasts as long as the page.

/** Maximum number of forms. */
const MOST = 20;
const written = new Map(); // by the key of a form: the values of its fields

/** Puts what was written into this form before into it, and keeps what will be. */
export function keep(key, form) {
  const fields = [...form.querySelectorAll('input, select, textarea')];
  written.get(key)?.forEach((values, at) => Object.assign(fields[at], values));
  form.addEventListener('input', () => {
    written.delete(key); // the last one used is the last one dropped
    written.set(key, fields.map(({ value, checked }) => ({ value, checked })));
    if (written.size > MOST) forget(written.keys().next().value);
  });
}

/** The form is settled. */
export function forget(key) {
  written.delete(key);
}
