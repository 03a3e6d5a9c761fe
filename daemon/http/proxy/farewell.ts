/**
 * What a client is told when its answer is cut short: a stream or a WebSocket that only breaks off looks like a fault of
 * the network, which it would look for, or take for a reason to ask again.
 *
 * It is told only where its reader stands between two messages (`EventBoundary`, `FrameBoundary`), so that nothing that
 * the provider said is changed by it. The connection ends behind it as it would without it: a stream is never ended as if
 * it were whole.
 */
import type { Refusal } from '../../core/refusal.js';
import { type Dialect, errorEvent } from '../dialect.js';
import { problemOf } from '../problems.js';

interface Farewell {
  message: string;
  code: string;
  /** Of a WebSocket's close frame (RFC 6455, 7.4.1). */
  closeCode: number;
}

const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;

/** @param refusal what the client would have been answered if its answer had not begun. */
function farewellOf({ kind, message, tokenIs }: Refusal): Farewell {
  if (kind === 'unauthorized') {
    const is = tokenIs ?? 'revoked';
    return { message: `token ${is}`, code: `token_${is}`, closeCode: POLICY_VIOLATION };
  }
  if (kind === 'unavailable') return { message: 'the proxy is shutting down', code: kind, closeCode: GOING_AWAY };
  return { message, code: problemOf(kind).code, closeCode: POLICY_VIOLATION };
}

/** A server-sent event. */
export function farewellEvent(refusal: Refusal, dialect: Dialect, requestId: string): Buffer {
  const { message, code } = farewellOf(refusal);
  const { type } = problemOf(refusal.kind);
  return Buffer.from(errorEvent(dialect, { message, hint: undefined, type, code, requestId }));
}

const FINAL_CLOSE = 0x88;

/** A WebSocket's close frame, as a server sends it: not masked. */
export function closeFrame(refusal: Refusal): Buffer {
  const { message, closeCode } = farewellOf(refusal);
  const reason = Buffer.from(message); // All of them are far shorter than the 123 bytes that there are.
  const head = [FINAL_CLOSE, 2 + reason.length, closeCode >> 8, closeCode & 0xff];
  return Buffer.concat([Buffer.from(head), reason]);
}
