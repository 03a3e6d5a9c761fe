import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Action } from '../state/exchange.js';
import type { Secret } from '../state/secret.js';

/** Writes a secret to a new file that only this user can read. An existing file is not overwritten. @returns the action with the result. */
export async function writeSecret(secret: Secret, given: string): Promise<Action> {
  const path = resolve(given.startsWith('~/') ? join(homedir(), given.slice(2)) : given);
  try {
    await writeFile(path, `${secret.reveal()}\n`, { flag: 'wx', mode: 0o600 });
    return { on: 'written', path };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { on: 'notWritten', path, why: code === 'EEXIST' ? 'the file already exists' : (code ?? 'failed') };
  }
}
