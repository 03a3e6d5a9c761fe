/** Storage of usage statistics. */
import type { UsageDimension } from '../../api/vocabulary.js';
import type { Outcome } from '../events.js';
import type { FailureCounts } from '../failure-kind.js';
import type { Scope } from './common.js';
import type { IncidentFigures } from './incidents.js';
import type { TopPart, TopQuery } from './top.js';

/** Sums over the requests of one row, or of one line of a report. */
export interface UsageCounts {
  requests: number;
  /** Answered from the cache. */
  hits: number;
  /** As reported by the provider; so are the other counts of tokens. */
  promptTokens: number;
  completionTokens: number;
  /** The parts of the prompt tokens that the provider read from its prompt cache, and wrote to it. */
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** The sum of the known costs, in nano-USD. */
  costNano: number;
  /** Requests that ran a model and whose cost is unknown. */
  unpriced: number;
  /** Failures of two kinds (core/failure-kind.ts). A row has the others by its outcome. */
  upstreamRefused: number;
  cut: number;
}

/** Sums for one hour, token, outcome, code and model. '' if there is none or it is unknown. */
export interface UsageHour extends UsageCounts {
  /** Derived from the fields that identify the row; begins with the hour, so that IDs are ordered by time. */
  id: string;
  /** Start of the hour, in ms since the epoch. */
  hourMs: number;
  tokenId: string;
  projectId: string;
  outcome: Outcome;
  code: string;
  model: string;
  /** Number of requests with token counts from the provider. */
  withTokens: number;
}

/** The same for one minute, as it is written. */
export interface UsageRow extends UsageHour {
  /** Start of the minute; null if only the hour is known any more. */
  minuteMs: number | null;
  /** Why the requests failed, in the words of `causeOf` (api/request-outcome.ts); '' for those that did not. */
  cause: string;
  /** Responses of the upstream by the time until they started, see `TIME_BOUNDS_MS` (core/usage.ts). */
  times: number[];
}

export interface UsageFlush {
  instanceId: string;
  /** 1, 2, 3 …: the transaction advances the instance's stored number from `seq - 1`, so it is applied at most once. */
  seq: number;
  nowMs: number;
  rows: readonly UsageRow[];
}

export type { UsageDimension };

export interface UsageQuery {
  by: ReadonlySet<UsageDimension>;
  /** Start of the first hour (inclusive); `untilMs` is exclusive. */
  sinceMs: number;
  untilMs: number;
  projectId?: string | undefined;
  tokenId?: string | undefined;
  /** Default: everything. */
  scope?: Scope | undefined;
}

/** Only the requested dimensions are present; '' if a dimension has no value. */
export interface UsageLine extends UsageCounts, FailureCounts {
  tokenId?: string;
  projectId?: string;
  model?: string;
  hourMs?: number;
  dayMs?: number;
}

export interface UsageStore {
  /** Adds the rows to the stored minutes, hours and days. After an error the outcome is unknown until `lastFlush` is read. */
  add(flush: UsageFlush): Promise<void>;
  /** `seq` of the instance's last committed flush; 0 before the first. */
  lastFlush(instanceId: string): Promise<number>;
  /** Sums up usage. @returns lines in no particular order; `limit` + 1 lines if there are more than `limit`. */
  report(query: UsageQuery, limit: number): Promise<UsageLine[]>;
  /** The first tokens, projects or models of a window that ends at that time. */
  top(query: TopQuery, nowMs: number): Promise<TopPart>;
  /** What fails and what is slow at that time. @param urgentCause comes before causes with more failures. */
  incidents(nowMs: number, urgentCause: string, scope?: Scope): Promise<IncidentFigures>;
  /** Removes a batch of usage before that day. @returns whether there may be more to remove. */
  removeBefore(dayMs: number): Promise<boolean>;
  /**
   * Removes a batch of the minutes before the first time, and of the causes of failures before the second; hours stay.
   *
   * @returns whether there may be more to remove.
   */
  removeMinutesBefore(minuteMs: number, causeMs: number): Promise<boolean>;
}
