// Shows JSON in readable form: names with values, and strings as plain text. For arguments of tool calls and for reports.
import { element } from './element.js';
import { visible } from './visible.js';

/** Maximum numbers of characters of a text, entries of a list, and nested lists that are shown. */
const LONGEST = 20_000;
const MOST = 100;
const DEEPEST = 4;

/** Lists in arguments with up to this many characters are shown as JSON on one line. */
const SHORT = 60;

/** Arguments in readable form, for any JSON. */
export function readableArguments(input) {
  if (isList(input) && isEmpty(input)) return element('p', { className: 'none' }, 'No arguments');
  return isList(input) ? list(input, 1, SHORT) : shown(input, 1, SHORT);
}

/** A report in readable form, for any JSON: no list is shown as JSON, unless it is empty or deeply nested. */
export const readableReport = (report) => (isList(report) && !isEmpty(report) ? list(report, 1, 0) : shown(report, 1, 0));

const isList = (value) => typeof value === 'object' && value !== null;
const isEmpty = (value) => Object.keys(value).length === 0;

function list(value, depth, short) {
  const entries = Object.entries(value);
  const rows = entries.slice(0, MOST).map(([name, each]) => {
    const key = Array.isArray(value) ? String(Number(name) + 1) : name;
    return element('div', {}, element('dt', {}, cut(key)), element('dd', {}, shown(each, depth + 1, short)));
  });
  const list = element('dl', { className: `arguments ${Array.isArray(value) ? 'items' : ''}`.trim() }, ...rows);
  const more = entries.length - rows.length;
  if (more > 0) list.append(element('div', { className: 'none' }, `and ${more.toLocaleString('en')} more`));
  return list;
}

function shown(value, depth, short) {
  if (typeof value === 'string') return element('pre', {}, value.trim() === '' ? JSON.stringify(value) : cut(value));
  const json = JSON.stringify(value) ?? '';
  if (!isList(value) || isEmpty(value) || json.length <= short) return element('pre', {}, visible(json));
  if (depth <= DEEPEST) return list(value, depth, short);
  return element('pre', {}, cut(JSON.stringify(value, null, 2)));
}

/** States how much is not shown, so that nobody approves a call in the belief that they saw all of it. */
function cut(text) {
  const more = text.length - LONGEST;
  const end = more > 0 ? `\n… and ${more.toLocaleString('en')} more characters (see the call above)` : '';
  return visible(text.slice(0, LONGEST)) + end;
}
