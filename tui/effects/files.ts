/** The operator's files: paths as they are typed, and the names in a folder. */
import { readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { FileEntry } from '../state/exchange.js';

/** Far more than anyone chooses from. */
const MAX_ENTRIES = 1_000;

export const wholePath = (given: string): string =>
  resolve(given.startsWith('~/') ? join(homedir(), given.slice(2)) : given);

/** @param folder as typed; empty: the current one. @returns none if it cannot be read: there is nothing to complete then. */
export async function filesIn(folder: string): Promise<FileEntry[]> {
  const entries = await readdir(wholePath(folder), { withFileTypes: true }).catch(() => []);
  return entries
    .slice(0, MAX_ENTRIES)
    .map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }))
    .sort((one, other) => one.name.localeCompare(other.name, 'en'));
}
