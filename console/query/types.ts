/** Types of parsed filters: the query for the API, the predicate, and the problems. */
import type {
  AuditQuery,
  EventStreamQuery,
  ProjectQuery,
  TokenQuery,
  TopQuery,
  WireEvent,
  WireProject,
  WireToken,
  WireTopRow,
} from '../../daemon/api/contract.js';

export interface Filtered {
  tokens: { query: TokenQuery; item: unknown };
  projects: { query: ProjectQuery; item: WireProject };
  audit: { query: AuditQuery; item: unknown };
  events: { query: EventStreamQuery; item: WireEvent };
  top: { query: TopQuery; item: WireTopRow };
}

export type FilteredScreen = keyof Filtered;

/** Projects and tokens that a filter can name. */
export interface KnownNames {
  projects: readonly Pick<WireProject, 'id' | 'name'>[];
  /** Tokens that can be given by a name or an id prefix; absent: only by whole ids. */
  tokens?: readonly Pick<WireToken, 'id' | 'name'>[];
  /** Names of models, for completion. */
  models?: readonly string[];
}

/** A problem and its position in the line. */
export interface FilterProblem {
  at: number;
  length: number;
  message: string;
}

export interface Filter<S extends FilteredScreen> {
  /** The query for the API. It depends on the line alone: relative times are resolved by the daemon. */
  query: Filtered[S]['query'];
  /** Whether an item of a stream or of a complete list matches; always true where the API filters. */
  matches: (item: Filtered[S]['item']) => boolean;
  /** False if the line has a problem or is incomplete, as in `state:`. It must not be applied then. */
  isComplete: boolean;
  problems: readonly FilterProblem[];
  /** Words to highlight in the list, in lower case. */
  words: readonly string[];
}

/** The result of reading the terms of a line. */
export interface TermsResult<S extends FilteredScreen> extends Pick<Filter<S>, 'query' | 'matches' | 'problems'> {
  /** The line is incomplete. */
  isOpen: boolean;
}

export interface Completion {
  /** Replacement for the characters from `from` to `to`. */
  insert: string;
  /** Description for the operator. */
  what: string;
}

/** A key of a filter line, for help and completion. */
export interface FilterKey {
  name: string;
  what: string;
  values: readonly Completion[];
}
