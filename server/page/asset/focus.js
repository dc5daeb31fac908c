// The focus and the keyboard. When an element with the focus disappears, the focus must not go to the body, where keyboard
// users would lose it.
import { byId } from './element.js';

/** On a phone, focusing a field opens the keyboard, and Enter inserts a line break. */
export const hasKeyboard = () => !matchMedia('(pointer: coarse)').matches;

/**
 * Call before hiding, disabling or removing `leaving`: moves its focus to `next`, else to the message field or the
 * transcript.
 */
export function passFocus(leaving, next = null) {
  if (!leaving.contains(document.activeElement)) return;
  const field = byId('prompt');
  const home = hasKeyboard() && !field.disabled ? field : byId('scroll');
  const takes = next && !next.disabled && next.checkVisibility();
  (takes ? next : home).focus({ preventScroll: true });
}

/** Makes Enter send the form of a text field. Shift+Enter is a new line, and so is Enter on a phone. */
export function sendsOnEnter(field) {
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || !hasKeyboard()) return;
    event.preventDefault();
    field.form.requestSubmit();
  });
}
