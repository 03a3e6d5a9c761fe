/** What is read from a filter line: the query for the API, what fits, and what is wrong. */
import type {
  AuditQuery,
  EventQuery,
  ProjectQuery,
  TokenQuery,
  WireEvent,
  WireProject,
} from '../../daemon/api/contract.js';

export interface Filtered {
  tokens: { query: TokenQuery; item: unknown };
  projects: { query: ProjectQuery; item: WireProject };
  audit: { query: AuditQuery; item: unknown };
  events: { query: EventQuery; item: WireEvent };
}

export type FilteredScreen = keyof Filtered;

/** What names stand for. */
export interface Known {
  projects: readonly Pick<WireProject, 'id' | 'name'>[];
  /** Tokens at hand, of which the beginning of an id will do. */
  tokenIds?: readonly string[];
}

/** What is wrong, and which characters of the line it is about. */
export interface FilterProblem {
  at: number;
  length: number;
  message: string;
}

export interface Filter<S extends FilteredScreen> {
  /** For the API. It is the same for the same line: what is counted from now on is counted by the daemon. */
  query: Filtered[S]['query'];
  /** Whether an item of a stream or of a whole list fits; always true where the API filters. */
  matches: (item: Filtered[S]['item']) => boolean;
  /** False while the line has a problem, or ends in the middle of something: `state:`. Then it is not to be applied. */
  isComplete: boolean;
  problems: readonly FilterProblem[];
  /** To be highlighted in what is shown, in lower case. */
  words: readonly string[];
}

/** What became of the terms of a line. */
export interface Reading<S extends FilteredScreen> extends Pick<Filter<S>, 'query' | 'matches' | 'problems'> {
  /** It ends in the middle of something. */
  isOpen: boolean;
}

export interface Completion {
  /** What stands in place of the characters from `from` to `to`. */
  insert: string;
  /** What it is, for people. */
  what: string;
}
