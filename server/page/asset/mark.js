// Marks searched words in a text.
import { element } from './element.js';

/** The text as nodes, with these lower-case words marked. */
export function marked(text, words) {
  const lower = text.toLocaleLowerCase();
  if (lower.length !== text.length) return [text]; // lower case moved the letters
  const places = [];
  for (let at = 0; at < text.length; ) {
    const word = words.filter((each) => lower.startsWith(each, at)).sort((a, b) => b.length - a.length)[0];
    if (word) places.push({ at, end: at + word.length });
    at += word ? word.length : 1;
  }
  const nodes = [];
  let last = 0;
  for (const { at, end } of places) {
    nodes.push(text.slice(last, at), element('mark', {}, text.slice(at, end)));
    last = end;
  }
  return [...nodes, text.slice(last)].filter((node) => node !== '');
}
