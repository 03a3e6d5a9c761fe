import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Action } from '../state/exchange.js';
import type { Hidden } from '../state/hidden.js';

/** Into a new file that only this user can read; one that is there is not overwritten. @returns what became of it. */
export async function writeSecret(secret: Hidden, given: string): Promise<Action> {
  const path = resolve(given.startsWith('~/') ? join(homedir(), given.slice(2)) : given);
  try {
    await writeFile(path, `${secret.reveal()}\n`, { flag: 'wx', mode: 0o600 });
    return { on: 'written', path };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { on: 'notWritten', path, why: code === 'EEXIST' ? 'it exists already' : (code ?? 'failed') };
  }
}
