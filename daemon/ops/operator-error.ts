import { type AllSettings, type Environment, loadPart, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { EXIT } from '../api/vocabulary.js';
import { SqliteUnavailable } from '../store/sqlite-available.js';

/** A failure that the operator can correct, with the exit code of the command. */
export class OperatorError extends Error {
  readonly exitCode: number;
  override name = 'OperatorError';
  constructor(exitCode: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

/** Some settings, for `use`. @throws {OperatorError} if they are invalid, or if `use` finds that they do not fit. */
export function fromSettings<Wanted extends keyof AllSettings, T>(
  env: Environment,
  envFile: string | undefined,
  keys: readonly Wanted[],
  use: (settings: Pick<AllSettings, Wanted>) => T,
): T {
  return withValidSettings(() => {
    const file = envFile === undefined ? undefined : readEnvFile(envFile);
    return use(loadPart({ env, file }, keys).settings);
  });
}

/** @throws {OperatorError} if `use` finds that settings are invalid. */
export function withValidSettings<T>(use: () => T): T {
  try {
    return use();
  } catch (error) {
    if (error instanceof SettingsError || error instanceof SqliteUnavailable)
      throw new OperatorError(EXIT.configuration, error.message, error);
    throw error;
  }
}
