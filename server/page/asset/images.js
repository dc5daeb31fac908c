// Images and PDFs for the next message: attached, pasted or dropped.
import { byId, element } from './element.js';
import { isText } from './files.js';
import { picture } from './picture.js';
import { toast } from './toast.js';
import { oneLine } from './visible.js';

const list = byId('images');
const input = byId('attach-file');
const drop = byId('composer').querySelector('.field');

/** The media type of a PDF. */
const PDF = 'application/pdf';
const TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', PDF];
const MOST = 16;
/** A message must fit into the body of a request, in characters: 12 MB. */
const MOST_TOGETHER = 16_000_000;
/** A larger file is scaled down, in bytes; maximum length of the longer side, in pixels. */
const LARGE = 600_000;
const LONGEST_SIDE = 1600;
const LONGEST_NAME = 60;

export class Images {
  #images = []; // of { url, mimeType }
  #message = {}; // what they are for
  /** Reads files; resolves to whether they are still wanted. Null if none are being read. */
  reading = null;

  /** `onText(file, isWanted)`: takes a text file, unless it is not wanted any more when it was read. */
  constructor({ onText }) {
    this.onText = onText;
    byId('attach').addEventListener('click', () => input.click());
    input.addEventListener('change', () => {
      this.#add([...input.files]);
      input.value = '';
    });
    byId('prompt').addEventListener('paste', (event) => {
      const files = [...event.clipboardData.files];
      if (files.length === 0) return;
      event.preventDefault();
      this.#add(files);
    });
    const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes('Files');
    // Anywhere on the page, because a file dropped beside the field must not replace the page.
    document.addEventListener('dragover', (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      drop.classList.add('dropping');
    });
    document.addEventListener('dragleave', (event) => event.relatedTarget ?? drop.classList.remove('dropping'));
    document.addEventListener('drop', (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      drop.classList.remove('dropping');
      this.#add([...event.dataTransfer.files]);
    });
  }

  get all() {
    return [...this.#images];
  }

  /** Those of another message. What is still being read was for the former one. */
  set all(images) {
    this.#message = {};
    this.#images = [...images];
    this.#show();
  }

  #add(files) {
    const [message, before] = [this.#message, this.reading];
    const reading = Promise.resolve(before).then(() => this.#read(files, () => message === this.#message));
    this.reading = reading;
    reading.finally(() => this.reading === reading && (this.reading = null));
  }

  async #read(files, isWanted) {
    for (const file of files) {
      if (!TYPES.includes(file.type)) {
        if (isText(file)) await this.onText(file, isWanted);
        else toast(`${file.name || 'This file'} is neither a text file, nor a PDF, nor a PNG, JPEG, GIF or WebP image.`, 'message');
        continue;
      }
      const image = await read(file).catch(() => null);
      if (!isWanted()) return false;
      if (!image) toast(`${file.name || 'The file'} could not be read.`, 'message');
      else if (this.#images.length >= MOST) toast(`A message has at most ${MOST} images and PDFs.`, 'message');
      else if (this.#size + image.url.length > MOST_TOGETHER) toast(`${file.name || 'The file'} is too large: the images and PDFs of a message have at most 12 MB.`, 'message');
      else this.#images.push(image);
    }
    if (!isWanted()) return false;
    this.#show();
    byId('prompt').focus();
    return true;
  }

  get #size() {
    return this.#images.reduce((sum, { url }) => sum + url.length, 0);
  }

  #show() {
    list.hidden = this.#images.length === 0;
    list.replaceChildren(...this.#images.map((image, index) => this.#item(image, index + 1)));
  }

  #item(image, number) {
    const isPdf = image.mimeType === PDF;
    const name = isPdf ? (image.name ?? 'PDF') : `Image ${number}`;
    const remove = element('button', { type: 'button', className: 'icon', ariaLabel: isPdf ? `Remove ${name}` : `Remove image ${number}` }, '×');
    remove.addEventListener('click', () => {
      this.#images = this.#images.filter((each) => each !== image);
      this.#show();
      byId('prompt').focus();
    });
    return element('li', { className: isPdf ? 'pdf' : '' }, picture(image, name), remove);
  }
}

/** Reads a file as a data URL, scaled down if it is large; an animated image is not changed. */
async function read(file) {
  if (file.type === PDF) return { url: await dataUrl(file), mimeType: PDF, name: oneLine(file.name, LONGEST_NAME) };
  const isSmall = file.size <= LARGE || file.type === 'image/gif';
  const url = isSmall ? await dataUrl(file) : await scaled(file);
  return { url, mimeType: /^data:([^;]+)/.exec(url)[1] };
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

async function scaled(file) {
  const bitmap = await createImageBitmap(file);
  const factor = Math.min(1, LONGEST_SIDE / Math.max(bitmap.width, bitmap.height));
  const [width, height] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(side * factor)));
  const canvas = element('canvas', { width, height });
  canvas.getContext('2d').drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  return canvas.toDataURL('image/webp', 0.85);
}
