import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Environment, loadSettings, SettingsError } from '../../config/settings.js';
import type { Sources } from '../../config/sources.js';
import { canary } from './canaries.js';
import { temporaryFolder } from './daemon.js';

export const MANAGEMENT_TOKEN = canary('management');

/** The problems of settings that consist of these only. */
export function problemsOf(env: Environment, more: Omit<Sources, 'env'> = {}): readonly string[] {
  return problemsIn(() => loadSettings(env, more));
}

/** The problems of these settings with a valid management token. */
export const problemsWith = (env: Environment, more?: Omit<Sources, 'env'>) =>
  problemsOf({ MANAGEMENT_TOKEN, ...env }, more);

export function problemsIn(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  throw new Error('the settings were accepted');
}

/** Writes a file with that content. @returns its path. */
export function file(name: string, content: string, dir = temporaryFolder()): string {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}
