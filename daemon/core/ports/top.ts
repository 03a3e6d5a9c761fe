/** Who and what has the most requests, failures or model tokens, or the longest times. */
import type { TopDimension, TopSort, TopWindow } from '../../api/vocabulary.js';
import type { FailureCounts } from '../failure-kind.js';
import type { Scope } from './common.js';

export interface TopQuery {
  by: TopDimension;
  window: TopWindow;
  sort: TopSort;
  projectId?: string | undefined;
  tokenId?: string | undefined;
  /** Default: everything. */
  scope?: Scope | undefined;
  /** Maximum number of rows. */
  limit: number;
}

export type TopCount =
  'requests' | 'cacheHits' | keyof FailureCounts | 'promptTokens' | 'completionTokens' | 'costNano' | 'unpriced';

export interface TopSums {
  counts: Record<TopCount, number>;
  /** Responses by the time until they started, see `TIME_BOUNDS_MS` (core/usage.ts); empty if the times are unknown. */
  times: number[];
}

/** Sums over time. */
export interface TopFigures extends TopSums {
  /** Requests per step, oldest first. */
  history: number[];
  failureHistory: number[];
}

/** A token, a project, a model of a project, or a model. */
export interface TopGroup extends TopFigures {
  /** Null for other dimensions. */
  tokenId: string | null;
  /** Null for models over all projects. */
  projectId: string | null;
  /** Null for other dimensions, '' if unknown. */
  model: string | null;
  lastMs: number;
}

/** What the database has of a window. */
export interface TopPart {
  /** Start of the first step. */
  fromMs: number;
  /** The first ones in the order of the query. */
  groups: TopGroup[];
  /** How many groups there are, with those that are not in `groups`. */
  groupCount: number;
  /** All requests that the query selects, also those without a group. */
  total: TopFigures;
}
