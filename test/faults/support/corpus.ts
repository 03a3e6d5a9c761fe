/**
 * Requests that once broke a proxy, byte for byte, each in a separate file. `{{token}}` is replaced by the client's secret, and a line
 * such as `{{998 times A: b}}` by that many lines.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, '../../../../test/faults/corpus');
const TOKEN = '{{token}}';
const REPEATED = /\{\{(\d+) times (.+)\}\}\r\n/g;

export interface CorpusFile {
  name: string;
  /** With the placeholder; one character per byte. */
  text: string;
}

export function corpus(): CorpusFile[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.http'))
    .sort()
    .map((file) => ({ name: file.slice(0, -'.http'.length), text: read(join(FOLDER, file)) }));
}

const read = (path: string) =>
  readFileSync(path, 'latin1').replace(REPEATED, (_, times: string, line: string) =>
    `${line}\r\n`.repeat(Number(times)),
  );

export const withSecret = (text: string, secret: string) => Buffer.from(text.replaceAll(TOKEN, secret), 'latin1');
