import { Failure } from '../../console/failure.js';

/** Why a file of settings is not used, in one sentence. @throws errors that are not about the file. */
export function problemOf(error: unknown): string {
  if (!(error instanceof Failure)) throw error;
  return error.sentence;
}
