import { text } from './strip.js';

/** Wraps text at spaces. A word longer than the line is left for the caller to cut. */
export function wrapped(words: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && text(`${last} ${word}`).width <= columns) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
