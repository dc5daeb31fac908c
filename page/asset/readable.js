// The words of a provider, out of its verbatim error.

const LONGEST = 300;

/** What a person is meant to read of it: the message of a JSON body, the title of an HTML page, else its first line. */
export function readable(message = '') {
  const body = message.replace(/^HTTP \d{3}:\s*/, '').trim();
  const words = ofJson(body) ?? ofHtml(body) ?? body;
  const line = words.trim().split('\n', 1)[0];
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}

function ofJson(body) {
  const at = body.search(/[{[]/);
  if (at < 0) return null;
  try {
    return said(JSON.parse(body.slice(at)));
  } catch {
    // Cut short, or with something behind it.
    const text = /"message"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(body)?.[1];
    try {
      return text ? JSON.parse(text) : null;
    } catch {
      return null;
    }
  }
}

/** The message in a body, wherever the usual APIs put it. */
function said(value) {
  if (typeof value === 'string') return value || null;
  if (Array.isArray(value)) return said(value[0]);
  if (value === null || typeof value !== 'object') return null;
  return said(value.error) ?? said(value.message) ?? said(value.detail) ?? said(value.errors);
}

function ofHtml(body) {
  if (!/^<(?:!doctype|html|head)/i.test(body)) return null;
  return /<title[^>]*>([^<]*)/i.exec(body)?.[1] ?? null;
}
