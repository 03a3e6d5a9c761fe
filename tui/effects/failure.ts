import { Failure as CommandFailure, failureOf } from '../../console/failure.js';
import { ApiError } from '../../daemon/api/client.js';
import type { Failure } from '../state/exchange.js';

/** @param server the address to name in messages. */
export function failureFrom(error: unknown, server: string): Failure {
  if (error instanceof ApiError) {
    const { status, code, message, retryAfterSeconds } = error;
    const retryAfterMs = retryAfterSeconds === null ? null : retryAfterSeconds * 1_000;
    return {
      kind: 'refused',
      status,
      code,
      message: status === 401 ? 'the management token was refused' : message,
      retryAfterMs,
    };
  }
  const { message, explanation } = failureOf(error, server);
  const { why, code = 'failed' } = explanation;
  // A request refused before it was sent does not mean that the daemon is unreachable.
  const kind = error instanceof CommandFailure ? 'refused' : 'unreachable';
  const words = why === undefined ? message : `${message}: ${why}`;
  return { kind, status: kind === 'refused' ? 400 : null, code, message: words, retryAfterMs: null };
}
