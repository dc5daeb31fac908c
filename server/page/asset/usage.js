// The dialog that shows who used what, and what was survived: a plot by day, and tables with all figures.
import { getUsage } from './api.js';
import { byId, element } from './element.js';
import { visible } from './visible.js';
import { wait } from './wording.js';

const dialog = byId('usage');
const days = byId('usage-days');
const measure = byId('usage-measure');
const problem = byId('usage-problem');

const DAY_MS = 86_400_000;
const WHOLE = new Intl.NumberFormat('en');
const SVG = 'http://www.w3.org/2000/svg';

/** What can be plotted: the whole bar, its marked part, and their names. */
const MEASURES = {
  turns: { all: (row) => row.turns, part: (row) => row.survived, names: ['answered at once, failed or stopped', 'survived a failure'] },
  requests: { all: (row) => row.requests, part: (row) => row.refusals, names: ['answered', 'refused or failed'] },
  tokens: { all: (row) => row.inputTokens + row.outputTokens, part: (row) => row.outputTokens, names: ['input', 'output'] },
  cost: { all: (row) => row.cost ?? 0, part: () => 0, names: ['cost', ''] },
};

/** The columns of figures. */
const FIGURES = [
  ['Turns', ({ turns }) => WHOLE.format(turns)],
  ['Survived', ({ survived }) => WHOLE.format(survived)],
  ['Failed', ({ failed }) => WHOLE.format(failed)],
  ['Waited', ({ waitedMs }) => (waitedMs > 0 ? wait(Math.ceil(waitedMs / 1000)) : '–')],
  ['Cost', cost],
  ['Requests', ({ requests }) => WHOLE.format(requests)],
  ['Refused', ({ refusals }) => WHOLE.format(refusals)],
  ['Input', ({ inputTokens }) => WHOLE.format(inputTokens)],
  ['Cached', ({ cacheReadTokens }) => WHOLE.format(cacheReadTokens)],
  ['Output', ({ outputTokens }) => WHOLE.format(outputTokens)],
  ['Reasoning', ({ reasoningTokens }) => WHOLE.format(reasoningTokens)],
];

export class Usage {
  #byDay;
  #asked = 0;

  constructor() {
    byId('usage-button').addEventListener('click', () => {
      dialog.showModal();
      this.#load();
    });
    byId('usage-close').addEventListener('click', () => dialog.close());
    days.addEventListener('change', () => this.#load());
    measure.addEventListener('change', () => this.#plot());
  }

  /** What is shown stays if the server cannot be reached. */
  async #load() {
    const asked = ++this.#asked;
    const from = new Date(Date.now() - (Number(days.value) - 1) * DAY_MS).toISOString().slice(0, 10);
    try {
      const [byDay, byModel] = await Promise.all([getUsage('day', from), getUsage('caller,model', from)]);
      if (asked !== this.#asked) return;
      this.#byDay = byDay;
      this.#show(byModel);
      problem.textContent = '';
    } catch (error) {
      if (asked === this.#asked) problem.textContent = `Not up to date: ${error.message}`;
    }
  }

  #show(byModel) {
    const { total } = byModel;
    const hasCost = total.cost !== undefined;
    measure.querySelector('[value=cost]').hidden = !hasCost;
    if (!hasCost && measure.value === 'cost') measure.value = 'turns';
    byId('usage-summary').textContent = summary(total);
    byId('usage-prices').textContent = total.unpriced ? `Without a price: ${total.unpriced.map(visible).join(', ')}.` : '';
    this.#plot();
    const hasCallers = byModel.rows.some(({ caller }) => caller !== undefined);
    const names = [...(hasCallers ? [['Caller', ({ caller }) => caller ?? 'administrator']] : []), ['Model', ({ model }) => visible(model)]];
    byId('usage-models').replaceChildren(table('Usage by model', names, byModel));
    byId('usage-by-day').replaceChildren(table('Usage by day', [['Day', ({ day }) => day]], this.#byDay));
  }

  #plot() {
    if (!this.#byDay) return;
    const { from, to, rows } = this.#byDay;
    const { all, part, names } = MEASURES[measure.value];
    const known = new Map(rows.map((row) => [row.day, row]));
    const shown = [];
    for (let at = Date.parse(from); at <= Date.parse(to); at += DAY_MS) {
      const day = new Date(at).toISOString().slice(0, 10);
      const row = known.get(day);
      shown.push({ day, whole: row ? all(row) : 0, marked: row ? part(row) : 0 });
    }
    const most = Math.max(...shown.map(({ whole }) => whole));
    const label = `${measure.selectedOptions[0].textContent} by day from ${from} to ${to}, at most ${amount(most)} a day. The table by day has the figures.`;
    const plot = svg('svg', { viewBox: `0 0 ${shown.length} 100`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label });
    for (const [at, { day, whole, marked }] of shown.entries()) {
      if (whole === 0) continue;
      const height = (value) => (value / most) * 100;
      const bar = svg('g');
      const title = svg('title');
      title.textContent = `${day}: ${amount(whole)}${marked > 0 ? `, of which ${amount(marked)} ${names[1]}` : ''}`;
      const rect = (className, y, value) => svg('rect', { class: className, x: at + 0.12, width: 0.76, y, height: height(value) });
      bar.append(title, rect('whole', 100 - height(whole), whole - marked), rect('marked', 100 - height(marked), marked));
      plot.append(bar);
    }
    byId('usage-plot').replaceChildren(plot);
    byId('usage-most').textContent = `${amount(most)} a day`;
    byId('usage-most').closest('figure').hidden = most === 0;
    byId('usage-from').textContent = from;
    byId('usage-to').textContent = to;
    const keys = names.map((name, at) => element('span', { className: at === 0 ? 'whole' : 'marked', hidden: name === '' }, name));
    byId('usage-legend').replaceChildren(...keys);
  }
}

const amount = (value) => (Number.isInteger(value) ? WHOLE.format(value) : value.toFixed(value < 0.1 ? 4 : 2));

function cost({ cost: known, unpriced }) {
  if (known === undefined) return unpriced ? 'no price' : '–';
  return amount(known) + (unpriced ? '+' : '');
}

function summary({ turns, survived, waitedMs, requests, refusals }) {
  if (requests === 0) return 'Nothing was used in this period.';
  const answers = `${WHOLE.format(turns)} ${turns === 1 ? 'turn or call' : 'turns and calls'}`;
  const failures = refusals === 0 ? 'No request was refused.' : `${WHOLE.format(refusals)} of ${WHOLE.format(requests)} requests were refused or failed.`;
  const saved = survived === 0 ? '' : ` ${WHOLE.format(survived)} survived a failure.`;
  const waited = waitedMs < 1000 ? '' : ` Total wait: ${wait(Math.ceil(waitedMs / 1000))}.`;
  return `${answers}. ${failures}${saved}${waited}`;
}

function table(caption, names, { rows, total }) {
  const line = (texts, figures) => element('tr', {}, ...texts, ...FIGURES.map(([, figure]) => element('td', {}, figure(figures))));
  const heads = [...names, ...FIGURES].map(([name], at) => element('th', { scope: 'col', className: at < names.length ? 'name' : '' }, name));
  const body = rows.map((row) => line(names.map(([, name]) => element('th', { scope: 'row' }, name(row))), row));
  const sum = line([element('th', { scope: 'row', colSpan: names.length }, 'Total')], total);
  const head = element('thead', {}, element('tr', {}, ...heads));
  return element('table', {}, element('caption', { className: 'unseen' }, caption), head, element('tbody', {}, ...body), element('tfoot', {}, sum));
}

function svg(tag, attributes = {}) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
