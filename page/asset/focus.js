// Where the focus goes when what has it goes away: never to the body, where a keyboard is lost.
import { byId } from './element.js';

/** On a phone a focused field brings up the keyboard, and Enter makes a line. */
export const hasKeyboard = () => !matchMedia('(pointer: coarse)').matches;

/** Before `leaving` is hidden, disabled or removed: passes its focus on to `next`, else to where one writes or reads. */
export function passFocus(leaving, next = null) {
  if (!leaving.contains(document.activeElement)) return;
  const field = byId('prompt');
  const home = hasKeyboard() && !field.disabled ? field : byId('scroll');
  const takes = next && !next.disabled && next.checkVisibility();
  (takes ? next : home).focus({ preventScroll: true });
}
