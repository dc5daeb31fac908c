// Text files for the next message. They are part of its text, as models read them, and are folded where it is shown.
import { byId, element } from './element.js';
import { toast } from './toast.js';
import { oneLine } from './visible.js';

const list = byId('files');

/** Maximum size of a file and of all files of a message, in bytes. A message must fit into one frame. */
const MOST = 400_000;
const LONGEST_NAME = 100;
/** Maximum length of a message with its files, in bytes, as it is sent: the socket is closed if a frame is too large. */
const MOST_TEXT = 1_048_576;

/** A file as it is written into a message. */
const WRITTEN = /\n*<file name="([^"\n]*)">\n([^]*?)\n<\/file>(?=\n|$)/g;

const TEXT = /^(?:text\/|application\/(?:json|xml|toml|yaml|x-yaml|javascript|sql|x-sh|x-httpd-php))|\+(?:json|xml)$/;
const ENDINGS =
  /\.(?:txt|md|markdown|rst|csv|tsv|json|jsonl|ya?ml|toml|ini|conf|cfg|env|log|xml|html?|css|scss|jsx?|mjs|cjs|tsx?|vue|svelte|py|rb|rs|go|java|kt|kts|swift|c|h|cc|cpp|hpp|cs|php|pl|lua|r|sql|sh|bash|zsh|fish|ps1|bat|tex|bib|diff|patch|proto|graphql|tf|gradle|cmake|mk|dockerfile)$/i;

/** Whether a file is text, by its type or name. */
export const isText = ({ type, name }) => TEXT.test(type) || ENDINGS.test(name) || /^(?:Dockerfile|Makefile|LICENSE|README)$/.test(name);

export class Files {
  #files = []; // of { name, text }

  get isEmpty() {
    return this.#files.length === 0;
  }

  clear() {
    this.#files = [];
    this.#show();
  }

  /** Adds a text file, if it is still wanted when it was read. */
  async add(file, isWanted) {
    const name = oneLine(file.name || 'file', LONGEST_NAME).replaceAll('"', "'");
    const text = file.size <= MOST ? await file.text().catch(() => null) : undefined;
    if (!isWanted()) return;
    const together = this.#files.reduce((sum, each) => sum + each.text.length, text?.length ?? 0);
    if (text === null) toast(`${name} could not be read.`, 'message');
    else if (text === undefined || together > MOST) toast(`${name} is too large: text files of a message have at most 400 kB.`, 'message');
    else if (text.includes('\0')) toast(`${name} is not a text file.`, 'message');
    else this.#files.push({ name, text });
    this.#show();
  }

  /** The message with the files; it is called by their names if it has no text. */
  with(text) {
    const said = text || this.#files.map(({ name }) => name).join(', ');
    const files = this.#files.map((file) => `<file name="${file.name}">\n${file.text.trimEnd()}\n</file>`);
    return [said, ...files].filter(Boolean).join('\n\n');
  }

  #show() {
    list.hidden = this.isEmpty;
    list.replaceChildren(...this.#files.map((file) => this.#item(file)));
  }

  #item(file) {
    const remove = element('button', { type: 'button', className: 'quiet icon', ariaLabel: `Remove ${file.name}` }, '×');
    remove.addEventListener('click', () => {
      this.#files = this.#files.filter((each) => each !== file);
      this.#show();
      byId('prompt').focus();
    });
    return element('li', {}, element('span', {}, file.name), remove);
  }
}

/** What is wrong with a message that is too long; empty if nothing is. */
export const tooLong = (text) => (new Blob([JSON.stringify(text)]).size > MOST_TEXT ? 'Not sent: a message has at most 1 MiB of text.' : '');

/** A message without its files. */
export const withoutFiles = (text) => text.replaceAll(WRITTEN, '').trim();

/** Another text with the files of a message. */
export const withFilesOf = (message, text) => [text, ...(message.match(WRITTEN) ?? []).map((file) => file.trim())].filter(Boolean).join('\n\n');

/** The parts of a message to show: its text, and its files, folded. */
export function parts(text) {
  const files = [...text.matchAll(WRITTEN)].map(([, name, content]) => {
    const summary = element('summary', {}, oneLine(name, LONGEST_NAME) || 'File');
    return element('details', { className: 'file' }, summary, element('pre', { tabIndex: 0 }, content));
  });
  const rest = files.length > 0 ? withoutFiles(text) : text;
  return [...(rest || files.length === 0 ? [rest] : []), ...files];
}
