/** Storage of usage statistics. */
import type { UsageDimension } from '../../api/vocabulary.js';
import type { Outcome } from '../events.js';
import type { TopDayStore, TopPart, TopQuery } from './top.js';

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
  /** The upstream responded with a 4xx, such as its own rate limit. Not part of `refused`, which counts this proxy's refusals. */
  upstreamRefused: number;
  /** The upstream responded with a 5xx or could not be reached. Part of `errors`. */
  upstreamErrors: number;
  /** Cut off by a revocation after being forwarded, or while being answered from the cache. Not part of `refused`. */
  cut: number;
}

/** Sums for one hour, token, outcome, code and model. '' if there is none or it is unknown. */
export interface UsageRow extends UsageCounts {
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
}

/** Only the requested dimensions are present; '' if a dimension has no value. */
export interface UsageLine extends UsageCounts {
  tokenId?: string;
  projectId?: string;
  model?: string;
  hourMs?: number;
  dayMs?: number;
  refused: number;
  errors: number;
}

export interface UsageStore extends TopDayStore {
  /** Adds the rows to the stored ones. After an error the outcome is unknown until `lastFlush` is read. */
  add(flush: UsageFlush): Promise<void>;
  /** `seq` of the instance's last committed flush; 0 before the first. */
  lastFlush(instanceId: string): Promise<number>;
  /** Sums up usage. @returns lines in no particular order; `limit` + 1 lines if there are more than `limit`. */
  report(query: UsageQuery, limit: number): Promise<UsageLine[]>;
  /** Usage of the hours from `firstMs` on. */
  top(query: TopQuery, firstMs: number): Promise<TopPart>;
  /** Removes a batch of usage before that day. @returns whether there may be more to remove. */
  removeBefore(dayMs: number): Promise<boolean>;
}
