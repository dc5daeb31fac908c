// Creates DOM nodes. Text enters the page only as text nodes.

/** An element with these properties set and these children appended; a string becomes a text node. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** The element with this id. */
export const byId = (id) => document.getElementById(id);
