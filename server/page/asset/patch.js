// Updates nodes without replacing unchanged ones, so that selection, focus and scroll positions are kept.

/** Replaces the children of `parent`, from this one on, with those of `fresh`, which is emptied. */
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

/** Whether both are equal except for their children. */
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
