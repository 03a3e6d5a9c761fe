import type {
  AuditAction,
  BudgetEventKind,
  BudgetMode,
  BudgetOwner,
  BudgetPeriod,
  BudgetThreshold,
  BudgetUnit,
  ChangeEventKind,
  RequestOutcome,
} from '../api/vocabulary.js';
import type { NamedRecord, SubjectNames } from './audit.js';

export { REQUEST_EVENT_KIND, REQUEST_OUTCOMES as OUTCOMES } from '../api/vocabulary.js';
export type { BudgetEventKind, ChangeEventKind };
export type Outcome = RequestOutcome;

/** Model tokens as counted by the provider; null for counts it did not report. */
export interface ModelUsage {
  /** All tokens of the prompt, including those of the provider's prompt cache. */
  promptTokens: number | null;
  completionTokens: number | null;
  totalTokens: number | null;
  /** The part of the prompt that the provider read from its prompt cache. */
  cacheReadTokens: number | null;
  /** The part of the prompt that the provider wrote to its prompt cache. */
  cacheWriteTokens: number | null;
}

/** The usage of a model, with the counts that only its cost depends on. */
export interface DetailedUsage extends ModelUsage {
  /** The part of `cacheWriteTokens` that the provider keeps for an hour. */
  cacheWrite1hTokens: number | null;
  /** The part of the completion that is reasoning. */
  reasoningTokens: number | null;
  /** The parts of the prompt and the completion that are audio. */
  audioInputTokens: number | null;
  audioOutputTokens: number | null;
  /** The cost that the provider reports, in nano-USD. */
  reportedNano: number | null;
}

/** The cost of a request. */
export interface RequestCost {
  /** In nano-USD; 0 if it was free; null if it ran a model and its cost is unknown. */
  costNano: number | null;
}

/** What was read from the bodies of a request and its response. */
export interface ContentFacts {
  /** The model named by the provider, otherwise the one that the client requested. */
  model: string | null;
  /** Null when the provider reported none: unknown is never 0. */
  usage: ModelUsage | null;
  /** Decoded and truncated; null unless bodies are captured. */
  requestBody: string | null;
  responseBody: string | null;
}

/** For bodies that were not read. */
export const NO_CONTENT_FACTS: ContentFacts = { model: null, usage: null, requestBody: null, responseBody: null };

/** Summary of a completed request. Usage, events, audit and metrics all use this one value, so that they cannot disagree. */
export interface RequestEnded extends ContentFacts, SubjectNames, RequestCost {
  requestId: string;
  /** When it ended, in ms since the epoch. */
  timeMs: number;
  projectId: string | null;
  /** Null when the request had no known token. */
  tokenId: string | null;
  /** The token's secret, obfuscated for display. */
  obfuscated: string | null;
  /** Null on a Unix socket. */
  clientIp: string | null;
  method: string;
  /** Without the query, which may contain secrets. */
  path: string;
  /** The status sent, or 499 when the client disconnected before that. */
  status: number;
  /** Code of the refusal, if any. */
  code: string | null;
  /** The sentence of the refusal, if any. */
  problem: string | null;
  outcome: Outcome;
  /** The request was forwarded to the upstream, and a use was counted. */
  isForwarded: boolean;
  /** A hit was answered without the upstream. */
  cache: 'hit' | 'miss';
  durationMs: number;
  /** From forwarding to the start of the upstream's response; null without a response. */
  upstreamMs: number | null;
  /** From the start of the request to the start of the response; null without a response. */
  firstByteMs: number | null;
  /** Body bytes received and sent. */
  bytesIn: number;
  bytesOut: number;
  /** The response was an event stream, or the connection became a WebSocket. */
  streamed: boolean;
  /** The response names `model`. Otherwise only the client does, who may have invented it. */
  isModelAnswered?: boolean;
  upstreamRequestId: string | null;
}

/** Called for each completed request. Must neither wait nor throw. */
export type OnEnded = (ended: RequestEnded) => void;

/** An event of a budget, for operators. */
export interface BudgetEvent extends SubjectNames {
  kind: BudgetEventKind;
  /** In ms since the epoch. */
  timeMs: number;
  projectId: string;
  /** Null for the budget of a project. */
  tokenId: string | null;
  /** For `budget.would_refuse`: number of requests since the previous event, including this one; null for the other kind. */
  count: number | null;
  budget: {
    owner: BudgetOwner;
    mode: BudgetMode;
    period: BudgetPeriod;
    unit: BudgetUnit;
    /** Nano-USD, or tokens. */
    limit: number;
    used: number;
    /** For `budget.threshold`. */
    percent: BudgetThreshold | null;
  };
}

/** An event before it is published: a completed request, the audit record of a change, or an event of a budget. */
export type PublishableEvent =
  | { kind: 'request'; ended: RequestEnded }
  | { kind: 'change'; record: NamedRecord }
  | { kind: 'budget'; event: BudgetEvent };

/** Length of the captured bodies, which can make one event a thousand times as large as another. */
export function bodyCharacters(event: PublishableEvent): number {
  if (event.kind !== 'request') return 0;
  const { requestBody, responseBody } = event.ended;
  return (requestBody === null ? 0 : requestBody.length) + (responseBody === null ? 0 : responseBody.length);
}

/** Event kind for each audited action that is published. */
export const CHANGES_PUBLISHED = {
  'token.create': 'token.created',
  'token.exchange': 'token.created',
  'token.update': 'token.changed',
  'token.revoke': 'token.revoked',
  'token.revoke_all': 'token.revoked',
  'token.reactivate': 'token.reactivated',
  'project.create': 'project.changed',
  'project.update': 'project.changed',
  'cache.purge': 'cache.purged',
} as const satisfies Partial<Record<AuditAction, string>> as Readonly<Partial<Record<AuditAction, ChangeEventKind>>>;
