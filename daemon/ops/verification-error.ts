/** A reason why audit files cannot be verified, with the exit code of the command. */
export class VerificationError extends Error {
  readonly exitCode: number;
  override name = 'VerificationError';
  constructor(exitCode: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}
