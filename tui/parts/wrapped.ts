import { text } from './strip.js';

/** In lines at spaces; a longer word is left as it is, to be cut. */
export function wrapped(words: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && text(`${last} ${word}`).width <= columns) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
