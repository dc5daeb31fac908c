// Shared by the pages without React: shows messages, tool calls and waits. Does not talk to a server.

/** The server's URL, from `?server=`. */
export const server = new URLSearchParams(location.search).get('server') ?? 'http://127.0.0.1:4777';

/** Builds a page. `show` redraws it. */
export function page(title, { send, stop, decide }) {
  document.body.innerHTML =
    '<main><h1></h1><ol class="log" aria-live="polite"></ol><p class="wait" role="status" hidden></p><form>' +
    '<input aria-label="Message" placeholder="Message" autofocus><button class="main">Send</button>' +
    '<button type="button" disabled>Stop</button></form></main>';
  const find = (selector) => document.querySelector(selector);
  const [log, banner, input, stopButton] = ['.log', '.wait', 'input', 'form [type=button]'].map(find);
  find('h1').textContent = title;
  stopButton.onclick = stop;
  find('form').onsubmit = (submitted) => {
    submitted.preventDefault();
    if (input.value.trim()) send(input.value);
    input.value = '';
  };
  let ticking;
  return {
    /** `items`: `{ role, text }` or `{ call: { id, name, input, output, waits } }`. `wait`: `{ message, nextAt }`. */
    show({ items, wait, error, busy }) {
      log.replaceChildren(...items.map((item) => (item.call ? tool(item.call, decide) : element('li', item.role, item.text))));
      if (error) log.append(element('li', 'error', error));
      stopButton.disabled = !busy;
      banner.hidden = !wait;
      clearInterval(ticking);
      if (!wait) return;
      const tick = () => {
        const left = Math.max(0, Math.ceil((wait.nextAt - Date.now()) / 1000));
        banner.replaceChildren(`Trying again in ${left} s`, element('small', '', wait.message));
      };
      tick();
      ticking = setInterval(tick, 250);
    },
  };
}

function element(tag, name, text) {
  return Object.assign(document.createElement(tag), { className: name, textContent: text });
}

function tool({ id, name, input, output, waits }, decide) {
  const card = element('li', 'tool', `${name} `);
  card.append(element('code', '', JSON.stringify(input)));
  if (output !== undefined) card.append(` → ${output}`);
  if (!waits) return card;
  const buttons = element('div', '', '');
  for (const [text, approved] of [['Allow', true], ['Deny', false]]) {
    const button = element('button', approved ? 'main' : '', text);
    button.onclick = () => decide(id, approved);
    buttons.append(button);
  }
  card.append(buttons);
  return card;
}
