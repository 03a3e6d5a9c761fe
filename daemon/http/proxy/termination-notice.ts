/**
 * Reason that a client gets when its response is cut short. A stream or a WebSocket that just breaks off looks like a network fault: the
 * client would search for one, or retry.
 *
 * The notice is sent only between two messages (`EventBoundary`, `FrameReader`), so that it does not alter what the provider sent. The
 * connection is then closed as it would be without the notice: a stream never ends as if it were complete.
 */
import type { Refusal, RefusalKind } from '../../core/refusal.js';
import { type ErrorFormat, errorEvent } from '../error-format.js';
import { problemOf, statusFor, typeFor } from '../problems.js';
import type { Wording } from '../wording.js';
import { closingFrames } from './websocket-frames.js';

interface TerminationNotice {
  message: string;
  code: string;
  /** Code of a WebSocket's close frame (RFC 6455, 7.4.1). */
  closeCode: number;
}

const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;
const CLOSE_CODES: Partial<Record<RefusalKind, number>> = {
  malformed_request: 1002,
  invalid_request: 1007,
  body_too_large: 1009,
  unavailable: 1013,
};

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

interface WebSocketNotice {
  /** Whether a message of the client is refused. Otherwise the connection is cut. */
  isForMessage: boolean;
  /** For a client that learns of errors by messages, as those of OpenAI's APIs do; null for others. */
  error: { requestId: string; wording: Wording } | null;
}

/** The last frames of a WebSocket: a message, if the client reads such messages, and a close frame. */
export function closingNotice(refusal: Refusal, { isForMessage, error }: WebSocketNotice): Buffer {
  const { message, code, closeCode } = isForMessage ? refusedMessage(refusal) : noticeFor(refusal);
  const hint = isForMessage ? error?.wording.hint : undefined;
  const event = error && {
    type: 'error',
    event_id: error.requestId,
    status: statusFor(refusal, error.wording),
    error: {
      type: typeFor(refusal, error.wording),
      code,
      message: hint === undefined ? message : `${message}: ${hint}`,
      param: null,
    },
  };
  return closingFrames(event && JSON.stringify(event), closeCode, message);
}

const refusedMessage = ({ kind, message }: Refusal): TerminationNotice => ({
  message,
  code: problemOf(kind).code,
  closeCode: CLOSE_CODES[kind] ?? POLICY_VIOLATION,
});

const LF = 0x0a;
const CR = 0x0d;

/** Boundary between server-sent events. An event ends with an empty line; a line ends with LF, CR or CRLF. */
export class EventBoundary {
  /** The last bytes so far: as many as two line ends can take. An empty stream counts as being between events. */
  #last: number[] = [LF, LF];

  read(chunk: Buffer): void {
    const bytes = chunk.subarray(-3);
    this.#last = bytes.length === 3 ? [...bytes] : [...this.#last, ...bytes].slice(-3);
  }

  get isReached(): boolean {
    const last = [...this.#last];
    if (last.at(-1) === LF && last.at(-2) === CR) last.pop();
    return isLineEnd(last.at(-1)) && isLineEnd(last.at(-2));
  }
}

const isLineEnd = (byte: number | undefined) => byte === LF || byte === CR;
