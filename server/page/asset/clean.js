// Sanitizes HTML that libraries made from a model's text. The renderer already produces nothing dangerous; this is the
// second line of defence.
import DOMPurify from './vendor/dompurify/purify.es.mjs';

const TAGS =
  'a blockquote br code del em h2 h3 h4 h5 h6 hr img input ins kbd li mark ol p pre s span strong sub sup table tbody td th ' +
  'thead tr u ul';
/** Attributes whose value is not a URL. */
const PLAIN = 'align alt aria-label checked class data-language disabled rel scope start target type';

const OPTIONS = {
  ALLOWED_TAGS: TAGS.split(' '),
  ALLOWED_ATTR: ['href', 'src', ...PLAIN.split(' ')],
  ADD_URI_SAFE_ATTR: PLAIN.split(' '),
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:|data:image\/(?:png|jpeg|gif|webp);base64,)/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,/i;

// By default, it allows any image.
DOMPurify.addHook('uponSanitizeAttribute', (_, attribute) => {
  if (attribute.attrName === 'src' && !PICTURE.test(attribute.attrValue)) attribute.keepAttr = false;
});

/** The sanitized HTML, as a fragment. */
export const clean = (html) => DOMPurify.sanitize(html, OPTIONS);
