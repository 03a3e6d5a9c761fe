/**
 * The filter line: words, `key:value`, quotes for what holds spaces, `!` for what must not be.
 *
 *   ci !old project:web state:active,rate_limited expires:<2h used:>90% "two words"
 *
 * Values of one key are alternatives (`state:active state:expired`, or with a comma); everything else must hold together.
 * Tokens and audit records are filtered by the API, never the page at hand: what it cannot express is a problem that is
 * told. Projects, which are in memory as a whole, and events, which all pass by, are filtered here as well.
 */
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
  nowMs: number;
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

export declare function parseFilter<S extends FilteredScreen>(text: string, screen: S, known: Known): Filter<S>;

export interface Completion {
  /** What stands in place of the characters from `from` to `to`. */
  insert: string;
  /** What it is, for people. */
  what: string;
}

export interface Suggestion {
  from: number;
  to: number;
  options: readonly Completion[];
}

/** What may stand where the caret is: keys and values, the likeliest first. */
export declare function suggest(text: string, caret: number, screen: FilteredScreen, known: Known): Suggestion;
