/**
 * # The last 24 hours, by token, project and model
 *
 * Sums of the hourly usage in memory, so that a page does not add up the rows of a hundred thousand tokens. They contain what all
 * instances have written to the database. Hours that have ended are read once, and again when the next hour has begun; the rows of the
 * current hour are read again when a report is asked for, after 20 times as long as reading took, and otherwise at least every ten
 * minutes. All of it is read little by little. The sums of few rows are read for each report.
 *
 * There are up to 300,000 cells of about 72 bytes, one or two for each token and model, and about 200 bytes for each token: 35 MB for a
 * hundred thousand tokens that are also used in the current hour, up to 80 MB, and twice as much for the seconds in which an hour begins. With more
 * cells there are no sums, and reports are read from the database.
 *
 * Projects and their models have their own sums, with their hours: up to 20,000 cells, which take at most 17 MB. With more of them, their
 * reports add up the sums of tokens. The hours of tokens are read from the database for those on a page. A report takes 8 bytes for each
 * token and 4 for each cell, and leaves them for the next one.
 */
import { AdaptiveMemo } from '../adaptive-memo.js';
import { inSlices } from '../in-slices.js';
import {
  type Clock,
  type LastUse,
  type Log,
  StoreUnavailable,
  type TopDayStore,
  type TopPart,
  type TopQuery,
} from '../ports.js';
import { SingleRun } from '../single-run.js';
import { firstIdOf, HOUR_MS } from '../usage.js';
import { withTimeout } from '../timing.js';
import { TOP_DAY_STEPS } from './counts.js';
import { DayStep } from './day-step.js';
import { partOf, type PartSource } from './part.js';
import { Subjects } from './subjects.js';

const MAX_DAY_CELLS = 300_000;
const MAX_PROJECT_CELLS = 20_000;
const ROWS_PER_READ = 500;
/** Fewer are read for each report, so that it is never out of date. */
const FEW_ROWS = 2_000;
/** How long a page waits for newer sums. */
const MAX_WAIT_MS = 15;
/** How long after the start of reading a page waits for the first ones: the same rows would be read for the page itself. */
const FIRST_WAIT_MS = 5_000;
const FIRST_READ_AFTER_MS = 5_000;
const MIN_PERIOD_MS = 60_000;
const MAX_PERIOD_MS = 600_000;
/** Reading takes up to 1/200 of the time while no report is asked for, but at most ten minutes pass. */
const READ_FACTOR = 200;
/** A use may be written this much later than it happened. What is written still later is read when the next hour begins. */
const LATE_MS = 60_000;

export interface DayTopOptions {
  store: TopDayStore;
  /** Writes the usage of this instance that waits in memory. */
  flush: () => Promise<void>;
  clock: Clock;
  log: Log;
  maxCells?: number;
  maxProjectCells?: number;
}

/** The report of a day. */
export type DayPart = TopPart & {
  /** The time of what it contains. */
  readAtMs: number;
  /** Whether the groups have their hours. */
  hasHours: boolean;
};

/** The sums of a window. */
class DaySums {
  readonly firstMs: number;
  /** Start of the hours that are read again. */
  readonly recentMs: number;
  /** The hours that ended more than a minute ago. */
  readonly old: DayStep;
  readonly subjects = new Subjects();
  /** By number of the token; 0 if it was not used. */
  lastUses: Float64Array = new Float64Array();
  /** By number of the project. */
  projectUses: Float64Array = new Float64Array();
  lastUse: LastUse = { tokenId: '', lastUsedAtMs: 0 };
  /** The current hour, and for a minute the one before it. */
  recent: DayStep;
  readAtMs = 0;
  rows = 0;

  constructor(firstMs: number, recentMs: number) {
    this.firstMs = firstMs;
    this.recentMs = recentMs;
    this.old = new DayStep(firstMs);
    this.recent = new DayStep(firstMs);
  }
}

export class DayTop {
  readonly #options: DayTopOptions;
  readonly #maxCells: number;
  readonly #maxProjectCells: number;
  /** Null: there are too many cells. */
  readonly #memo: AdaptiveMemo<DaySums | null>;
  readonly #reading = new SingleRun<DaySums | null>();
  #readingSinceMs = 0;
  #sums: DaySums | null = null;
  #cancel: () => void = () => undefined;
  #isClosed = false;

  constructor(options: DayTopOptions) {
    this.#options = options;
    this.#maxCells = options.maxCells ?? MAX_DAY_CELLS;
    this.#maxProjectCells = options.maxProjectCells ?? MAX_PROJECT_CELLS;
    this.#memo = new AdaptiveMemo(options.clock, (sums) => sums === null || sums.rows > FEW_ROWS, MAX_WAIT_MS);
  }

  /** Call when the tables exist: reads the first sums a little later, and then newer ones. */
  begin(): void {
    this.#readAfter(FIRST_READ_AFTER_MS);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#reading.current?.catch(() => undefined);
  }

  #readAfter(ms: number): void {
    const { clock, log } = this.#options;
    this.#cancel = clock.after(ms, () => {
      const beganAtMs = clock.monotonic();
      const read = this.#memo
        .current(() => this.#read())
        .catch((error: unknown) => {
          log.debug('cannot read the usage of the last 24 hours, retrying', { error });
          return null;
        });
      void read.then((sums) => {
        const isFew = sums !== null && sums.rows <= FEW_ROWS;
        const factoredMs = Math.max(MIN_PERIOD_MS, READ_FACTOR * (clock.monotonic() - beganAtMs));
        if (!this.#isClosed) this.#readAfter(isFew ? MAX_PERIOD_MS : Math.min(MAX_PERIOD_MS, factoredMs));
      });
    });
  }

  /**
   * The first groups of all instances; those of projects and models have their hours. Null if there are no sums: while the first ones are
   * read, and with too many cells.
   *
   * @throws {StoreUnavailable}
   */
  async part(query: TopQuery): Promise<DayPart | null> {
    const { clock } = this.#options;
    const current = this.#memo.current(() => this.#read());
    const waitMs = Math.max(0, this.#readingSinceMs + FIRST_WAIT_MS - clock.monotonic());
    const sums = await withTimeout(clock, waitMs, current, () => null);
    if (!sums) return null;
    // Newer sums may come while the part is computed.
    const { readAtMs } = sums;
    const source = sourceOf(sums, query);
    const part = await inSlices(clock, partOf(source, query));
    return { ...part, readAtMs, hasHours: source.isOfProjects };
  }

  #read(): Promise<DaySums | null> {
    return this.#reading.run(async () => {
      const { clock, flush } = this.#options;
      this.#readingSinceMs = clock.monotonic();
      const readAtMs = clock.now();
      await flush();
      const firstMs = readAtMs - (readAtMs % HOUR_MS) - (TOP_DAY_STEPS - 1) * HOUR_MS;
      const settledMs = readAtMs - LATE_MS;
      const recentMs = settledMs - (settledMs % HOUR_MS);
      const isKnown = this.#sums?.firstMs === firstMs && this.#sums.recentMs === recentMs && this.#sums.rows > FEW_ROWS;
      const known = isKnown ? this.#sums : null;
      const sums = known ?? new DaySums(firstMs, recentMs);
      if (!known && !(await this.#addRows(sums, sums.old, firstMs, sums.recentMs))) return null;
      const recent = new DayStep(firstMs);
      if (!(await this.#addRows(sums, recent, sums.recentMs, firstMs + TOP_DAY_STEPS * HOUR_MS))) return null;
      // At once, so that a report has all of one reading.
      this.#sums = Object.assign(sums, await this.#lastUsesAfter(sums), { recent, readAtMs });
      return sums;
    });
  }

  /** @returns whether there was room for all of them. */
  async #addRows(sums: DaySums, step: DayStep, fromMs: number, untilMs: number): Promise<boolean> {
    const add = step.adder(sums.subjects, this.#maxProjectCells);
    const others = step === sums.old ? 0 : sums.old.tokens.cells;
    for (let after = firstIdOf(fromMs); ;) {
      const rows = await this.#options.store.topHourRows(after, untilMs, ROWS_PER_READ);
      if (this.#isClosed) throw new StoreUnavailable('closing');
      for (const row of rows) add(row);
      if (step.tokens.cells + others > this.#maxCells) return false;
      sums.rows += rows.length;
      after = rows.at(-1)?.id ?? after;
      if (rows.length < ROWS_PER_READ) return true;
    }
  }

  /** When the tokens were last used: their rows only say in which hour. @returns new arrays, because a report may use those of `sums`. */
  async #lastUsesAfter(sums: DaySums): Promise<Pick<DaySums, 'lastUses' | 'projectUses' | 'lastUse'>> {
    const { subjects } = sums;
    const lastUses = copyOf(sums.lastUses, subjects.tokens.end);
    const projectUses = copyOf(sums.projectUses, subjects.projects.end);
    const sinceMs = Math.max(sums.firstMs, sums.lastUse.lastUsedAtMs - LATE_MS);
    for (let after: LastUse = { tokenId: '', lastUsedAtMs: 0 }; ;) {
      const uses = await this.#options.store.lastUses(sinceMs, after, ROWS_PER_READ);
      if (this.#isClosed) throw new StoreUnavailable('closing');
      for (const { tokenId, lastUsedAtMs } of uses) {
        const token = subjects.tokens.find(tokenId);
        if (token === undefined) continue;
        lastUses[token] = lastUsedAtMs;
        const project = subjects.projectOf(token);
        projectUses[project] = Math.max(projectUses[project] ?? 0, lastUsedAtMs);
      }
      after = uses.at(-1) ?? after;
      if (uses.length < ROWS_PER_READ)
        return { lastUses, projectUses, lastUse: after.tokenId === '' ? sums.lastUse : after };
    }
  }
}

/** Where the groups of a query come from. */
function sourceOf(sums: DaySums, { by, tokenId }: TopQuery): PartSource & { isOfProjects: boolean } {
  const { old, recent, subjects, firstMs, readAtMs } = sums;
  const lastUseIn = (uses: Float64Array) => (subject: number) => Math.min(readAtMs, uses[subject] ?? 0);
  const [length, common] = [TOP_DAY_STEPS, { subjects, fromMs: firstMs }];
  if (by !== 'token' && tokenId === undefined && old.projects && recent.projects) {
    const steps = [old, recent];
    const addHours: PartSource['history']['add'] = (group, _, cell, index) => steps[index]?.addHours(group, cell);
    return {
      ...common,
      steps: [old.projects, recent.projects],
      isOfProjects: true,
      history: { length, add: addHours },
      lastUseOf: lastUseIn(sums.projectUses),
    };
  }
  return {
    ...common,
    steps: [old.tokens, recent.tokens],
    isOfProjects: false,
    history: { length, add: () => undefined },
    lastUseOf: lastUseIn(sums.lastUses),
  };
}

function copyOf(numbers: Float64Array, length: number): Float64Array {
  const copy = new Float64Array(Math.max(length, numbers.length));
  copy.set(numbers);
  return copy;
}
