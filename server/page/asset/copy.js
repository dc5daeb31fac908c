// Copies a text to the clipboard.

/** Resolves to whether it was allowed. */
export async function copy(text) {
  // Only secure pages have a clipboard: https, or this machine.
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const focused = document.activeElement;
  const field = document.createElement('textarea');
  field.className = 'unseen';
  field.readOnly = true;
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  focused?.focus({ preventScroll: true });
  return done;
}
