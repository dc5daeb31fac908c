// Images and PDFs in messages. Remote images are shown as links, and not fetched.
import { element } from './element.js';

const SHOWN = /^data:image\/(?:png|jpeg|gif|webp);base64,/i;

/** An image, or the name of a PDF; `name` describes it. */
export function picture({ url, mimeType, name: own }, name = own ?? (isPdf(url, mimeType) ? 'PDF' : 'Image')) {
  if (SHOWN.test(url)) return element('img', { src: url, alt: name });
  if (!/^https:\/\//i.test(url)) return element('span', {}, name);
  return element('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, name);
}

const isPdf = (url, mimeType) => mimeType === 'application/pdf' || url.startsWith('data:application/pdf');

/** The images of a user message. `seq`: of the chunk, if it is stored. */
export function attachments(images, className = '', seq) {
  const node = element('div', { className: `user attachment ${className}`.trim(), role: 'article', ariaLabel: 'You' });
  node.append(element('div', { className: 'bubble' }, ...images.map((image) => picture(image))));
  if (seq !== undefined) node.dataset.seq = seq;
  return node;
}
