// A field of a tool's form: its label, control and explanation, its value, and what is wrong with it.
import { element } from './element.js';
import { oneLine, visible } from './visible.js';

/** Maximum numbers of characters of a label and of an explanation. */
const LONGEST_LABEL = 200;
const LONGEST_HINT = 1000;

/** The types of inputs for formats of texts. */
const FORMATS = { email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local' };

let count = 0;

/** Makes a field. `value()` is undefined if it is left empty. */
export function field(spec) {
  count += 1;
  const id = `field-${count}`;
  const label = oneLine(spec.title ?? spec.name, LONGEST_LABEL);
  const hint = element('p', { className: 'hint', id: `${id}-hint` }, visible((spec.description ?? '').slice(0, LONGEST_HINT)));
  const problem = element('p', { className: 'field-problem', id: `${id}-problem` });
  const made = (MAKERS[spec.kind] ?? text)(spec, id);
  const group = made.group ?? made.control;
  group.setAttribute('aria-describedby', [hint.textContent && hint.id, problem.id].filter(Boolean).join(' '));
  const mark = spec.required ? [] : [element('small', {}, ' (optional)')];
  const name = made.group ? element('legend', {}, label, ...mark) : element('label', { htmlFor: id }, label, ...mark);
  const parts = [hint.textContent && hint, problem].filter(Boolean);
  if (made.group) made.group.prepend(name);
  const node = made.group ? element('div', { className: 'field-row' }, made.group, ...parts) : element('div', { className: `field-row field-${spec.kind}` }, name, made.control, ...parts);
  const check = () => {
    problem.textContent = wrong(spec, made);
    group.setAttribute('aria-invalid', String(problem.textContent !== ''));
    return problem.textContent === '';
  };
  group.addEventListener('change', () => problem.textContent !== '' && check());
  return { name: spec.name, node, value: made.value, check, focus: () => made.control.focus() };
}

/** What is wrong with a field, for people; empty if nothing is. */
function wrong(spec, { control, value }) {
  const given = value();
  if (control.validity && !control.validity.valid && !control.validity.valueMissing) return control.validationMessage;
  const isMissing = given === undefined || (spec.kind === 'choices' && given.length === 0 && (spec.minimum ?? 0) > 0);
  if (isMissing) return spec.required ? 'Required.' : '';
  if (spec.kind === 'choices' && given.length < (spec.minimum ?? 0)) return `Choose at least ${spec.minimum}.`;
  if (spec.kind === 'choices' && given.length > (spec.maximum ?? Infinity)) return `Choose at most ${spec.maximum}.`;
  if (spec.kind === 'text' && [...given].length < (spec.minimum ?? 0)) return `Write at least ${spec.minimum} characters.`;
  return '';
}

function text({ format, maximum, required, default: usual }, id) {
  const isLong = !format && (maximum ?? 0) > 200;
  const control = element(isLong ? 'textarea' : 'input', { id, autocomplete: 'off' });
  if (!isLong) control.type = FORMATS[format] ?? 'text';
  if (maximum !== undefined && control.type !== 'date' && control.type !== 'datetime-local') control.maxLength = Math.min(Number(maximum), 100_000);
  control.required = required === true;
  control.value = typeof usual === 'string' ? (format === 'date-time' ? local(usual) : usual) : '';
  const value = () => {
    if (control.value === '') return undefined;
    return format === 'date-time' ? new Date(control.value).toISOString() : control.value;
  };
  return { control, value };
}

/** A date and time as its input takes it, in local time; empty if it is none. */
function local(given) {
  const at = new Date(given);
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function number({ kind, minimum, maximum, required, default: usual }, id) {
  const control = element('input', { id, type: 'number', step: kind === 'integer' ? '1' : 'any', required: required === true });
  // Steps are counted from the minimum.
  if (minimum !== undefined) control.min = kind === 'integer' ? Math.ceil(minimum) : minimum;
  if (maximum !== undefined) control.max = maximum;
  if (typeof usual === 'number') control.value = usual;
  return { control, value: () => (control.value === '' ? undefined : Number(control.value)) };
}

function boolean({ default: usual }, id) {
  const control = element('input', { id, type: 'checkbox', checked: usual === true });
  return { control, value: () => control.checked };
}

function choice({ options = [], required, default: usual }, id) {
  const control = element('select', { id, required: required === true });
  control.append(element('option', { value: '' }, required ? 'Choose…' : 'None'));
  control.append(...options.map(({ title, value }, at) => element('option', { value: String(at) }, oneLine(title ?? value, LONGEST_LABEL))));
  const known = options.findIndex(({ value }) => value === usual);
  if (known >= 0) control.value = String(known);
  return { control, value: () => (control.value === '' ? undefined : options[Number(control.value)].value) };
}

function choices({ options = [], required, default: usual = [] }, id) {
  const boxes = options.map(({ value }, at) => element('input', { type: 'checkbox', id: `${id}-${at}`, checked: Array.isArray(usual) && usual.includes(value) }));
  const labels = options.map(({ title, value }, at) => element('label', {}, boxes[at], element('span', {}, oneLine(title ?? value, LONGEST_LABEL))));
  const group = element('fieldset', { className: 'choices' }, ...labels);
  const chosen = () => options.filter((_, at) => boxes[at].checked).map(({ value }) => value);
  const value = () => (chosen().length === 0 && !required ? undefined : chosen());
  return { group, control: boxes[0] ?? group, value };
}

const MAKERS = { text, number, integer: number, boolean, choice, choices };
