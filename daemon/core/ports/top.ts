/** Who and what has the most requests, failures or model tokens, or the longest times. */
import type { TopDimension, TopSort, TopWindow } from '../../api/vocabulary.js';

export interface TopQuery {
  by: TopDimension;
  window: TopWindow;
  sort: TopSort;
  projectId?: string | undefined;
  tokenId?: string | undefined;
  /** Maximum number of rows. */
  limit: number;
}

/** A query for one of the windows in memory. */
export type RecentTopQuery = Omit<TopQuery, 'window'> & { window: Exclude<TopWindow, '24h'> };

/** Counts and times that can be added up, so that several instances have the quantiles of all their responses. */
export interface TopSums {
  /** In the order of `COUNTS` (core/top/step.ts). */
  counts: number[];
  /** Responses by the time until they started, one number per bucket; empty if the times are unknown. */
  times: number[];
}

/** A token, a project, or a model of a project. */
export interface TopGroup extends TopSums {
  /** Null for other dimensions. */
  tokenId: string | null;
  projectId: string;
  /** Null for other dimensions, '' if unknown. */
  model: string | null;
  lastMs: number;
  /** Requests per step, oldest first. */
  history: number[];
  failureHistory: number[];
}

/** The part of a report that comes from one source. */
export interface TopPart {
  /** From when on requests are included. */
  fromMs: number;
  /** The first ones in the order of the query. */
  groups: TopGroup[];
  /** How many groups there are, with those that are not in `groups`. */
  groupCount: number;
  untracked: number;
  /** All requests that the query selects, also those without a group. */
  total: TopSums;
}

/** Counts of one token and model in an hour. '' if there is none or it is unknown. */
export interface TopHourRow {
  id: string;
  hourMs: number;
  tokenId: string;
  projectId: string;
  model: string;
  /** In the order of `COUNTS`. */
  counts: number[];
}

export interface LastUse {
  tokenId: string;
  lastUsedAtMs: number;
}

/** The requests and failures of a group in an hour. */
export interface TopGroupHour extends Pick<TopGroup, 'tokenId' | 'projectId' | 'model'> {
  hourMs: number;
  requests: number;
  failures: number;
}

/** What the rows of a day are built from, read little by little. Its methods throw {StoreUnavailable}. */
export interface TopDayStore {
  /** Rows of hours before `untilMs`, in the order of IDs, after that ID. */
  topHourRows(afterId: string, untilMs: number, limit: number): Promise<TopHourRow[]>;
  /** Tokens that were used since then, in the order of that time, after that token. */
  lastUses(sinceMs: number, after: LastUse, limit: number): Promise<LastUse[]>;
  /** The hours since `firstMs` of some groups. */
  topGroupHours(query: TopQuery, firstMs: number, groups: readonly TopGroup[]): Promise<TopGroupHour[]>;
}
