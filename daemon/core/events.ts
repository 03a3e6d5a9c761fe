import type { AuditAction, ChangeEventKind, RequestOutcome } from '../api/vocabulary.js';
import type { AuditRecord } from './audit.js';

export { REQUEST_OUTCOMES as OUTCOMES } from '../api/vocabulary.js';
export type { ChangeEventKind };
export type Outcome = RequestOutcome;

/** Model tokens as the provider counted them; null for what it did not say. */
export interface ModelUsage {
  promptTokens: number | null;
  completionTokens: number | null;
  totalTokens: number | null;
}

/** What a request and its answer say of themselves, as far as they could be read. */
export interface ContentFacts {
  /** As the provider named it, otherwise as the client asked for it. */
  model: string | null;
  /** Null when the provider did not say: unknown is never 0. */
  usage: ModelUsage | null;
  /** Only where bodies are captured, decoded and cut. */
  requestBody: string | null;
  responseBody: string | null;
}

/** Of what nobody could read. */
export const NO_CONTENT_FACTS: ContentFacts = { model: null, usage: null, requestBody: null, responseBody: null };

/** What is known of a request once it is over: one value for all who keep a record of it, so that they cannot disagree. */
export interface RequestEnded extends ContentFacts {
  requestId: string;
  /** When it ended, in ms since the epoch. */
  timeMs: number;
  projectId: string | null;
  /** Null when no token is known for it. */
  tokenId: string | null;
  /** The token's secret as it may be shown. */
  obfuscated: string | null;
  /** Null over a unix socket. */
  clientIp: string | null;
  method: string;
  /** Without the query, which may hold anything. */
  path: string;
  /** The status sent, or 499 when the client left before any was. */
  status: number;
  /** The refusal's code, if it was refused. */
  code: string | null;
  outcome: Outcome;
  /** The upstream was asked, and a use was counted for it. */
  isForwarded: boolean;
  /** A hit was answered without asking the upstream. */
  cache: 'hit' | 'miss';
  durationMs: number;
  /** From when it was forwarded until the upstream's answer began; null when none did. */
  upstreamMs: number | null;
  /** From its beginning until its answer began; null when none did. */
  firstByteMs: number | null;
  /** Of the bodies, as far as they were read and sent. */
  bytesIn: number;
  bytesOut: number;
  /** Answered with an event stream, or joined with the upstream by a WebSocket. */
  streamed: boolean;
  upstreamRequestId: string | null;
}

/** Told of each request that is over. It must neither wait nor throw. */
export type OnEnded = (ended: RequestEnded) => void;

/** What is published: a request that is over, or the record of a change. */
export type Happening = { kind: 'request'; ended: RequestEnded } | { kind: 'change'; record: AuditRecord };

/** How much of it is bodies: what can make one event a thousand times as large as another. */
export function bodyCharacters(happening: Happening): number {
  if (happening.kind !== 'request') return 0;
  const { requestBody, responseBody } = happening.ended;
  return (requestBody === null ? 0 : requestBody.length) + (responseBody === null ? 0 : responseBody.length);
}

/** The kinds of events that changes are published as. */
export const CHANGES_PUBLISHED = {
  'token.create': 'token.created',
  'token.revoke': 'token.revoked',
  'token.revoke_all': 'token.revoked',
  'token.reactivate': 'token.reactivated',
  'project.create': 'project.changed',
  'project.update': 'project.changed',
  'cache.purge': 'cache.purged',
} as const satisfies Partial<Record<AuditAction, string>> as Readonly<Partial<Record<AuditAction, ChangeEventKind>>>;
