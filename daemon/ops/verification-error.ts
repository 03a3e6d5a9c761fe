/** What stands in the way of a verification, in words for the operator, and the exit code that says so. */
export class VerificationError extends Error {
  readonly exitCode: number;
  override name = 'VerificationError';
  constructor(exitCode: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}
