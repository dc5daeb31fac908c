// Downloads a conversation as a file that the server writes: all stored data as JSON lines, or the messages as Markdown.
import { getExport } from './api.js';
import { element } from './element.js';

/** Starts the download. `format`: `jsonl` or `markdown`. */
export async function download({ id }, format) {
  const { name, file } = await getExport(id, format);
  const link = element('a', { href: URL.createObjectURL(file), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
