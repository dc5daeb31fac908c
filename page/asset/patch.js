// Brings nodes up to date without replacing what stays: a selection, the focus and the scrolling in them are kept.

/** Makes the children of `parent`, from this one on, those of `fresh`, which is used up. */
export function patch(parent, from, fresh) {
  let at = parent.childNodes[from] ?? null;
  for (const node of [...fresh.childNodes]) {
    if (at === null) parent.append(node);
    else if (isLike(at, node)) update(at, node);
    else at.replaceWith((at = node));
    at = at?.nextSibling ?? null;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Whether both are the same but for what is inside. */
function isLike(old, fresh) {
  if (old.nodeName !== fresh.nodeName) return false;
  if (old.nodeType !== Node.ELEMENT_NODE) return true;
  const names = fresh.getAttributeNames();
  return names.length === old.attributes.length && names.every((name) => old.getAttribute(name) === fresh.getAttribute(name));
}

function update(old, fresh) {
  if (old.nodeType === Node.ELEMENT_NODE) return patch(old, 0, fresh);
  if (old.data === fresh.data) return;
  if (fresh.data.startsWith(old.data)) old.appendData(fresh.data.slice(old.length));
  else old.data = fresh.data;
}
