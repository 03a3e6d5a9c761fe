/**
 * Reason that a client gets when its response is cut short. A stream or a WebSocket that just breaks off looks like a network fault: the
 * client would search for one, or retry.
 *
 * The notice is sent only between two messages (`EventBoundary`, `FrameBoundary`), so that it does not alter what the provider sent. The
 * connection is then closed as it would be without the notice: a stream never ends as if it were complete.
 */
import type { Refusal } from '../../core/refusal.js';
import { type ErrorFormat, errorEvent } from '../error-format.js';
import { problemOf } from '../problems.js';

interface TerminationNotice {
  message: string;
  code: string;
  /** Code of a WebSocket's close frame (RFC 6455, 7.4.1). */
  closeCode: number;
}

const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;

/** @param refusal the refusal that the client would have got if its response had not begun. */
function noticeFor({ kind, message, tokenIs }: Refusal): TerminationNotice {
  if (kind === 'unauthorized') {
    const is = tokenIs ?? 'revoked';
    return { message: `token ${is}`, code: `token_${is}`, closeCode: POLICY_VIOLATION };
  }
  if (kind === 'unavailable') return { message: 'the proxy is shutting down', code: kind, closeCode: GOING_AWAY };
  return { message, code: problemOf(kind).code, closeCode: POLICY_VIOLATION };
}

/** The notice as a server-sent event. */
export function terminationEvent(refusal: Refusal, format: ErrorFormat, requestId: string): Buffer {
  const { message, code } = noticeFor(refusal);
  const { type, status } = problemOf(refusal.kind);
  const { retryAfterSeconds } = refusal;
  return Buffer.from(
    errorEvent(format, { message, hint: undefined, type, code, requestId, status, retryAfterSeconds }),
  );
}

const FINAL_CLOSE = 0x88;

/** The notice as a WebSocket close frame; frames from a server are not masked. */
export function closeFrame(refusal: Refusal): Buffer {
  const { message, closeCode } = noticeFor(refusal);
  const reason = Buffer.from(message); // All messages are far shorter than the limit of 123 bytes.
  const head = [FINAL_CLOSE, 2 + reason.length, closeCode >> 8, closeCode & 0xff];
  return Buffer.concat([Buffer.from(head), reason]);
}
