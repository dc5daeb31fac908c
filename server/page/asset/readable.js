// Extracts the readable message from a provider's verbatim error.

const LONGEST = 300;

/** The readable part: the message of a JSON body, the title of an HTML page, or the first line. */
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
    // Truncated, or followed by other text.
    const text = /"message"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(body)?.[1];
    try {
      return text ? JSON.parse(text) : null;
    } catch {
      return null;
    }
  }
}

/** The message in a body, in any of the usual places. */
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
