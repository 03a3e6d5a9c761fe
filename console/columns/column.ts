/**
 * The columns of lists, each declared once for the command line, the terminal UI and the Admin UI. A column says what a cell shows; how it
 * looks is decided by each front end, once for each kind of cell.
 */
import type { Cost } from '../../daemon/api/money.js';

export type Tint = 'green' | 'red' | 'yellow' | 'dim';

/** A token or project. */
export interface Named {
  id: string;
  /** Null if it has none, or if it is not known. */
  name: string | null;
}

/** What a cell shows. */
export type Cell =
  | { kind: 'text'; text: string | null; tint?: Tint | undefined }
  /** Text that is not prose, such as an error code or a masked secret. */
  | { kind: 'code'; text: string | null; tint?: Tint | undefined }
  /** The beginning of an ID. */
  | { kind: 'id'; id: string }
  /** `isOwn`: of the row itself. It stays empty without a name if the ID is shown beside it. */
  | { kind: 'token' | 'project'; of: Named; isOwn?: boolean }
  /** The token or project that something is about, or else a text. */
  | { kind: 'subject'; token: Named | null; project: Named | null; text: string | null }
  /** A state of tokens or projects. */
  | { kind: 'state'; state: string }
  /** How long ago or ahead a timestamp is; null: never. `words`: instead of the distance to the second. */
  | { kind: 'distance'; at: string | null; words?: string; tint?: Tint | undefined }
  /** Date and time; of `hour`, what is recorded by the hour. */
  | { kind: 'time'; at: string; isHour?: boolean }
  /** The time of what happened lately. */
  | { kind: 'clock'; at: string }
  /** Null: there is none. */
  | { kind: 'count'; count: number | null; tint?: Tint | undefined }
  /** Several counts with labels. */
  | { kind: 'counts'; counts: readonly { label: string; count: number }[] }
  /** Used requests of a cap; 0: no cap. */
  | { kind: 'cap'; used: number; cap: number }
  | { kind: 'part'; part: number; of: number }
  | { kind: 'pair'; counts: readonly [number | null, number | null] }
  /** From 0 to 1; infinite without a cap. */
  | { kind: 'share'; share: number }
  | { kind: 'milliseconds'; ms: number | null }
  | { kind: 'bytes'; bytes: number }
  | { kind: 'cost'; cost: Cost }
  /** Counts over time, the newest last. */
  | { kind: 'trend'; history: readonly number[]; errors: readonly number[] };

export type FrontEnd = 'cli' | 'tui' | 'admin';

export const IN_TERMINALS: readonly FrontEnd[] = ['cli', 'tui'];
/** Only where the operator chooses it, in the terminal UI. */
export const ON_REQUEST: readonly FrontEnd[] = [];

export interface Column<T, Id extends string = string> {
  /** Unique in its list. The terminal UI stores it with chosen columns. */
  id: Id;
  title: string;
  /** The title in terminals. Default: the title in capitals. */
  shortTitle?: string;
  /** For the choice of columns. */
  what: string;
  /** Front ends that show it by default. Default: all. */
  shownBy?: readonly FrontEnd[];
  /** If a terminal is too narrow, columns with the highest rank are left out first. Rank 0 always stays. */
  rank: number;
  /** In columns of a terminal. With a maximum it is as wide as its content, within these limits. */
  width: number | readonly [min: number, max: number];
  /** Whether its content is never cut, such as a number. */
  isWhole?: boolean;
  /** Whether it is the reason to look at the list: where there is little room, optional columns are left out before it is cut. */
  keepsWidth?: boolean;
  alignRight?: boolean;
  /** The field that the API sorts by. */
  sort?: string;
  /** The key of a query that selects by it (console/query/keys.ts). */
  key?: string;
  /** Whether the words of a query are looked for in it. The terminal UI highlights them. */
  isSearched?: boolean;
  /** Whether the details of an item show it in their own way, or have it with another. Else it has a line there. */
  isSummarized?: boolean;
  cell(item: T, nowMs: number): Cell;
}

/** Declares the columns of a list, by their IDs and in their order. */
export const columnsOf =
  <T>() =>
  <Id extends string>(table: Record<Id, Omit<Column<T>, 'id'>>): readonly Column<T, Id>[] =>
    Object.entries<Omit<Column<T>, 'id'>>(table).map(([id, column]) => ({ id: id as Id, ...column }));

export const isShownBy = ({ shownBy }: Column<never>, frontEnd: FrontEnd): boolean =>
  shownBy === undefined || shownBy.includes(frontEnd);

export const widthsOf = ({ width }: Column<never>): { min: number; max: number } =>
  typeof width === 'number' ? { min: width, max: width } : { min: width[0], max: width[1] };

/** The token and the project that an event or a record concerns. */
export const subjectsOf = ({ token_id, token_name, project_id, project_name }: Concerned) => ({
  token: token_id === null ? null : { id: token_id, name: token_name },
  project: project_id === null ? null : { id: project_id, name: project_name },
});

interface Concerned {
  token_id: string | null;
  token_name: string | null;
  project_id: string | null;
  project_name: string | null;
}

export const shortTitleOf = ({ title, shortTitle = title.toUpperCase() }: Column<never>): string => shortTitle;

export const text = (text: string | null, tint?: Tint): Cell => ({ kind: 'text', text, tint });
export const cost = ({ cost_usd, unpriced_requests }: Cost): Cell => ({
  kind: 'cost',
  cost: { cost_usd, unpriced_requests },
});
export const count = (count: number | null, tint?: Tint): Cell => ({ kind: 'count', count, tint });
/** A number of failures. */
export const failures = (failed: number): Cell => count(failed, failed > 0 ? 'red' : undefined);
export const distance = (at: string | null, tint?: Tint): Cell => ({ kind: 'distance', at, tint });

/** Characters of a trend in terminals. Longer histories are summed up. */
export const TREND_COLUMNS = 10;
