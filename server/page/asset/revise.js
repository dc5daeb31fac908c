// The actions to answer a message again and to edit it. They identify the message by the `seq` of its chunk.
import { modelChoice } from './choice.js';
import { byId, element } from './element.js';
import { tooLong, withFilesOf, withoutFiles } from './files.js';
import { passFocus, sendsOnEnter } from './focus.js';
import { answersIn, copyOffer } from './source.js';

const column = byId('transcript');

/** What was being edited in conversations that were left, by their ids, and how many are kept. */
const left = new Map();
const MOST = 20;

/** The handler, set once. `onRevise({ seq, message?, model? })` */
let onRevise = () => {};

export function listen(listener) {
  onRevise = listener;
}

/** Below an answer: answers the last message before it again. Hidden where *Try again* is offered. */
export function answerOffers() {
  const offers = element('div', { className: 'offers' });
  const revise = (model) => onRevise({ seq: messageBefore(offers), ...(model && { model }) });
  const button = element('button', { type: 'button', className: 'quiet small regenerate' }, 'Regenerate');
  button.addEventListener('click', () => revise());
  const choice = modelChoice('Regenerate with …', revise);
  choice.classList.replace('button', 'quiet');
  choice.classList.add('regenerate');
  offers.append(copyOffer(() => answersIn(offers.closest('.turn'))), button, choice);
  return offers;
}

/** Beside a user message: replaces it with a field to edit its text. Its text files stay as they are. */
export function editOffer(text) {
  const button = element('button', { type: 'button', className: 'quiet small edit' }, 'Edit');
  button.addEventListener('click', () => edit(button.closest('.user'), text, withoutFiles(text)));
  return button;
}

/** The edited message was not taken, and can be sent again; `why` is said beside it. */
export function release(why = '') {
  for (const part of column.querySelectorAll('.revision :disabled')) part.disabled = false;
  for (const problem of column.querySelectorAll('.revision [role=alert]')) problem.textContent = why;
}

/** What is being edited: `{ seq, former, text }`. */
function edits() {
  const forms = [...column.querySelectorAll('.revision')].filter((form) => !form.querySelector(':disabled'));
  return forms.map((form) => ({ seq: form.closest('.user').dataset.seq, former: form.former, text: form.querySelector('textarea').value }));
}

/** The conversation is left. What is being edited is kept for when it is shown again. */
export function leaveEdits(id) {
  const now = edits();
  if (now.length > 0) left.set(id, now);
  if (left.size > MOST) left.delete(left.keys().next().value);
}

/** Runs `change`, which shows the messages of the conversation `id` anew. One that is being edited stays so, with what was written. */
export function keepEdits(id, change) {
  const kept = [...edits(), ...(left.get(id) ?? [])];
  left.delete(id);
  const { activeElement } = document;
  change();
  for (const { seq, former, text } of kept) {
    const message = column.querySelector(`.user[data-seq="${seq}"]`);
    if (message) edit(message, former, text);
  }
  if (kept.length > 0 && activeElement.isConnected) activeElement.focus();
}

/** `former`: the whole message; `text`: what is written in the field. */
function edit(message, former, text) {
  const field = element('textarea', { value: text, ariaLabel: 'Message', rows: Math.min(text.split('\n').length + 1, 12) });
  const send = element('button', { type: 'submit', className: 'button strong' }, 'Send');
  const cancel = element('button', { type: 'button', className: 'button' }, 'Cancel');
  const problem = element('p', { className: 'field-problem', role: 'alert' });
  const form = element('form', { className: 'revision', former }, field, problem, element('div', { className: 'row' }, cancel, send));
  const leave = () => {
    message.classList.remove('editing');
    passFocus(form, message.querySelector('.edit'));
    form.remove();
  };
  cancel.addEventListener('click', leave);
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    leave();
  });
  sendsOnEnter(field);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const revised = withFilesOf(former, field.value.trim());
    if (!revised || field.disabled) return;
    problem.textContent = tooLong(revised);
    if (problem.textContent) return;
    for (const part of [field, send]) part.disabled = true;
    onRevise({ seq: Number(message.dataset.seq), message: revised });
  });
  message.classList.add('editing');
  message.append(form);
  field.focus();
}

/** The `seq` of the last message above this one that is not superseded. */
function messageBefore(node) {
  const messages = [...column.querySelectorAll('.user[data-seq]')].filter((message) => !message.closest('.replaced'));
  const above = messages.filter((message) => message.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING);
  return Number(above.at(-1)?.dataset.seq);
}
