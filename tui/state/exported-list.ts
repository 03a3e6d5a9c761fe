/** A list that is written to a file. */
import type { FilteredScreen } from '../../console/query/types.js';
import type { TableFormat } from '../../console/table-format.js';
import type { TopDimension, TopWindow } from '../../daemon/api/vocabulary.js';

/** Rows of a file, at most. */
export const MAX_EXPORTED = 100_000;

export interface ExportedList {
  screen: FilteredScreen;
  /** As typed. */
  path: string;
  format: TableFormat;
  /** Whether an existing file is replaced, which the operator has confirmed. */
  replaces: boolean;
  /** The IDs of the columns. */
  columns: readonly string[];
  /** Lists of which only some pages are loaded are requested again. */
  source: { query: Readonly<Record<string, string | undefined>> } | { rows: readonly object[] };
  /** Of events: what their query cannot express. */
  filter: string;
  /** Of the rows of Top. */
  top: { by: TopDimension; period: TopWindow };
  /** By the daemon's clock. */
  nowMs: number;
}
