// Images in messages. Remote images are shown as links, and not fetched.
import { element } from './element.js';

const SHOWN = /^data:image\/(?:png|jpeg|gif|webp);base64,/i;

/** An image; `name` describes it. */
export function picture({ url }, name = 'Image') {
  if (SHOWN.test(url)) return element('img', { src: url, alt: name });
  if (!/^https:\/\//i.test(url)) return element('span', {}, name);
  return element('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, name);
}

/** The images of a user message. `seq`: of the chunk, if it is stored. */
export function attachments(images, className = '', seq) {
  const node = element('div', { className: `user attachment ${className}`.trim(), role: 'article', ariaLabel: 'You' });
  node.append(element('div', { className: 'bubble' }, ...images.map((image) => picture(image))));
  if (seq !== undefined) node.dataset.seq = seq;
  return node;
}
