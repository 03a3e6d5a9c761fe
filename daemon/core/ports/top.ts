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
