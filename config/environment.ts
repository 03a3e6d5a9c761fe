import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { type Environment, SettingsError } from './settings.js';

/**
 * The variables that settings are read from: those of a file, and over them the real environment's.
 *
 * @throws {SettingsError} when the file cannot be read.
 */
export function readEnvironment(real: Environment, envFile: string | undefined): Environment {
  if (envFile === undefined) return real;
  try {
    return { ...parseEnv(readFileSync(envFile, 'utf8')), ...real };
  } catch (error) {
    const { code = 'failed' } = error as NodeJS.ErrnoException;
    throw new SettingsError([`--env-file: cannot read ${envFile}: ${code}`]);
  }
}
