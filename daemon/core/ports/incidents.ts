/** What fails and what is slow now. */

/** Failures of one cause in a project, and the token that has most of them. */
export interface FailureCause {
  /** '' for requests with an unknown token; so are the tokens. */
  projectId: string;
  cause: string;
  failures: number;
  tokens: number;
  tokenId: string;
  failuresOfToken: number;
}

/** Requests of a project, or of one token of it. */
export interface RecentRequests {
  projectId: string;
  /** '' for a project. */
  tokenId: string;
  requests: number;
  /** Responses by the time until they started, see `TIME_BOUNDS_MS` (core/usage.ts). */
  times: readonly number[];
  /** The same in the part of the hour before. */
  earlierTimes: readonly number[];
}

export interface IncidentFigures {
  /** Start of the recent minutes. */
  fromMs: number;
  /** Those with the most failures, after the urgent ones. */
  causes: FailureCause[];
  /** Of all projects, and of the tokens in `causes`. */
  requests: RecentRequests[];
}
