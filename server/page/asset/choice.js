// Selects for a model or route.
import { element } from './element.js';

let known = [];

/** A select of the models with this label; `onPick(model)`. It shows its label again after a choice. */
export function modelChoice(label, onPick) {
  const choice = element('select', { className: 'button choice-of-model', ariaLabel: label, title: label });
  choice.dataset.label = label;
  choice.addEventListener('change', () => {
    const model = choice.value;
    choice.value = '';
    if (model) onPick(model);
  });
  fill(choice);
  return choice;
}

/** The available models. */
export function setModels(models) {
  known = models;
  document.querySelectorAll('.choice-of-model').forEach(fill);
}

function fill(choice) {
  const options = known.map((name) => element('option', { value: name }, name));
  choice.replaceChildren(element('option', { value: '' }, choice.dataset.label), ...options);
  choice.hidden = known.length < 2;
}
