// Small dialogs.
import { element } from './element.js';

/** Asks for confirmation. Resolves to whether it was given. `keep`: the label of the button for the other answer. */
export async function confirm({ title, text, action, keep }) {
  return (await ask({ title, action, keep, isDanger: true, parts: [element('p', {}, text)] })) !== null;
}

/** Asks for a line of text. Resolves to the text, or null. */
export async function line({ title, label, value, action, longest }) {
  const field = element('input', { type: 'text', value, required: true, maxLength: longest, autocomplete: 'off', ariaLabel: label });
  const answer = await ask({ title, action, parts: [field], focus: field });
  return answer === null ? null : field.value.trim() || null;
}

function ask({ title, action, keep = 'Cancel', parts, isDanger = false, focus }) {
  const heading = element('h2', { id: 'ask-title' }, title);
  const cancel = element('button', { type: 'button', className: 'button' }, keep);
  const button = element('button', { className: `button ${isDanger ? 'danger' : 'strong'}`, value: 'yes' }, action);
  const form = element('form', { method: 'dialog' }, heading, ...parts, element('div', { className: 'row' }, cancel, button));
  const dialog = element('dialog', { className: 'ask' }, form);
  dialog.setAttribute('aria-labelledby', 'ask-title');
  cancel.addEventListener('click', () => dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  focus?.select();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes' ? true : null);
    });
  });
}
