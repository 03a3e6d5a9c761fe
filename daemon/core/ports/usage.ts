/** What usage asks of the database. */
import type { UsageDimension } from '../../api/vocabulary.js';
import type { Outcome } from '../events.js';

/** What requests came to that one row or one line of a report stands for. */
export interface UsageCounts {
  requests: number;
  /** Answered from the cache. */
  hits: number;
  /** As far as the provider counted them. */
  promptTokens: number;
  completionTokens: number;
  /** The upstream's answer was a 4xx, such as its own rate limit. None of `refused`, which are ours. */
  upstreamRefused: number;
  /** The upstream's answer was a 5xx, or none could be had of it. Part of `errors`. */
  upstreamErrors: number;
  /** Cut by a revocation after they were forwarded, or while they were answered out of the cache. None of `refused`. */
  cut: number;
}

/** An hour of one token with one result and one model. '' where there is none, or none is known. */
export interface UsageRow extends UsageCounts {
  /** Made of all that tells it from other rows; begins with the hour, so that the order of ids is one of time. */
  id: string;
  /** When the hour begins, in ms since the epoch. */
  hourMs: number;
  tokenId: string;
  projectId: string;
  outcome: Outcome;
  code: string;
  model: string;
  /** How many of the requests the provider gave token counts for. */
  withTokens: number;
}

export interface UsageFlush {
  instanceId: string;
  /** 1, 2, 3 …: the transaction advances the instance's stored number from `seq - 1`, and so happens once or not at all. */
  seq: number;
  nowMs: number;
  rows: readonly UsageRow[];
}

export type { UsageDimension };

export interface UsageQuery {
  by: ReadonlySet<UsageDimension>;
  /** Beginnings of hours: from the one until before the other. */
  sinceMs: number;
  untilMs: number;
  projectId?: string | undefined;
  tokenId?: string | undefined;
}

/** What was asked for by is there, '' for none; the rest is not. */
export interface UsageLine extends UsageCounts {
  tokenId?: string;
  projectId?: string;
  model?: string;
  hourMs?: number;
  dayMs?: number;
  refused: number;
  errors: number;
}

export interface UsageStore {
  /** Adds rows to those that are there. After an error its outcome is unknown until `lastFlush` is read. */
  add(flush: UsageFlush): Promise<void>;
  /** The `seq` of the instance's last flush that was committed; 0 before the first. */
  lastFlush(instanceId: string): Promise<number>;
  /** Adds up. @returns in no order, and one more than `most` lines where there are more. */
  report(query: UsageQuery, most: number): Promise<UsageLine[]>;
  /** Removes some of what lies before that day. @returns whether there may be more of it. */
  forgetBefore(dayMs: number): Promise<boolean>;
}
