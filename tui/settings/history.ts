/** The history of the command line, in the state folder: one command per line, readable by the operator only. */
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withoutSecrets } from '../../console/escape.js';
import { readOwnFile, replaceFile } from '../../console/own-file.js';
import { MAX_HISTORY } from '../state/command-line.js';

const FILE = 'tui-history';
const TRUST = { risk: 'its owner could suggest commands to you', advice: 'Use a file that you own' };

/** @returns none if the file cannot be read: a history is only a convenience. */
export async function readHistory(folder: string | undefined): Promise<string[]> {
  return folder === undefined ? [] : linesIn(folder).catch(() => []);
}

async function linesIn(folder: string): Promise<string[]> {
  const text = (await readOwnFile(join(folder, FILE), TRUST)) ?? '';
  return text
    .split('\n')
    .filter((line) => line !== '')
    .slice(-MAX_HISTORY);
}

export class CommandHistory {
  readonly #folder: string | undefined;
  #pending: Promise<void> = Promise.resolve();

  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /**
   * Adds a line to the end, after those that other terminal UIs have added in the meantime. A line with a secret is not stored, and a
   * line that cannot be stored is lost.
   */
  add(line: string, secrets: readonly string[]): void {
    const folder = this.#folder;
    if (folder === undefined || withoutSecrets(line, secrets) !== line) return;
    const add = async () => {
      const lines = [...(await linesIn(folder)), line].slice(-MAX_HISTORY);
      const path = join(folder, FILE);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      replaceFile(path, `${lines.join('\n')}\n`, 0o600, null);
    };
    this.#pending = this.#pending.then(add).catch(() => undefined);
  }

  /** Resolves when everything is stored. */
  async written(): Promise<void> {
    await this.#pending;
  }
}
