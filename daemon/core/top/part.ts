/**
 * The part of a top report that is computed from steps. A hundred thousand tokens have so many cells that looking at all of them at
 * once would delay requests, so it yields after each slice.
 */
import { quantile } from '../histogram.js';
import type { TopGroup, TopPart, TopQuery } from '../ports.js';
import { BOUNDS_MS, BUCKETS, COUNTS, PROMPT_TOKENS } from './counts.js';
import { firstOf } from './selection.js';
import { noSums, type Step, type Sums } from './step.js';
import type { Subjects } from './subjects.js';

/** Cells, or groups, that are looked at before other work runs: about a millisecond. */
export const CELLS_PER_SLICE = 8_192;

export interface PartSource {
  steps: readonly Step[];
  /** Pinned until the part is complete. */
  subjects: Subjects;
  /** From when on requests are known. */
  fromMs: number;
  history: {
    length: number;
    /** Adds the cell to the history of its group. @param index of its step. */
    add: (group: TopGroup, step: Step, cell: number, index: number) => void;
  };
  /** Whether the cells are of projects and models: their tokens are numbers of projects. */
  isOfProjects?: boolean;
  /** When a token (or such a project) was last used, if that is known better than from the steps; 0 if it is not. */
  lastUseOf?: (token: number) => number;
}

/** The history in which each step of `stepMs` is an element. */
export const historyOfSteps = (firstMs: number, stepMs: number, length: number): PartSource['history'] => ({
  length,
  add({ history, failureHistory }, step, cell) {
    const at = Math.round((step.startMs - firstMs) / stepMs);
    add(history, at, step.countOf(cell, 0));
    add(failureHistory, at, step.failuresOf(cell));
  },
});

type PartQuery = Omit<TopQuery, 'window'>;
type Slices<T> = Generator<void, T>;

/** The group of each cell of each step; -1 if the query excludes it. Cells that are added meanwhile are not included. */
interface Grouping {
  groups: readonly Int32Array[];
  /** All groups are below it. */
  end: number;
}

/** The first groups in the order of the query. */
export function* partOf(source: PartSource, query: PartQuery): Slices<TopPart> {
  const { steps, fromMs } = source;
  const grouping = yield* groupingOf(source, query);
  const { keys, count } = yield* keysOf(source, query, grouping);
  const chosen = yield* firstOf(keys, query.limit, CELLS_PER_SLICE);
  const groups = yield* groupsOf(source, query.by, grouping, chosen);
  const total = yield* totalOf(steps, query, grouping);
  const untracked = steps.reduce((sum, step) => sum + step.untracked, 0);
  return { fromMs, groups, groupCount: count, untracked, total };
}

/** Calls `look` for each cell that has a group, or one of the `wanted` groups. */
function* eachCell(
  steps: readonly Step[],
  { groups }: Grouping,
  look: (group: number, step: Step, cell: number, index: number) => void,
  wanted: Uint8Array | null = null,
): Slices<void> {
  for (const [index, step] of steps.entries()) {
    const ofStep = groups[index] ?? NO_GROUPS;
    for (let from = 0; from < ofStep.length; from += CELLS_PER_SLICE) {
      const to = Math.min(ofStep.length, from + CELLS_PER_SLICE);
      for (let cell = from; cell < to; cell += 1) {
        const group = ofStep[cell] ?? -1;
        if (group >= 0 && (wanted === null || wanted[group] === 1)) look(group, step, cell, index);
      }
      yield;
    }
  }
}
const NO_GROUPS = new Int32Array(0);

function* groupingOf(source: PartSource, query: PartQuery): Slices<Grouping> {
  const { groupOf, end } = grouper(source, query);
  // Before the first yield, as the ends of the numbers: the last step may get cells of new subjects meanwhile.
  const groups = source.steps.map((step) => new Int32Array(step.cells));
  for (const [index, step] of source.steps.entries()) {
    const ofStep = groups[index] ?? NO_GROUPS;
    for (let from = 0; from < ofStep.length; from += CELLS_PER_SLICE) {
      const to = Math.min(ofStep.length, from + CELLS_PER_SLICE);
      for (let cell = from; cell < to; cell += 1) ofStep[cell] = groupOf(step, cell);
      yield;
    }
  }
  return { groups, end: end() };
}

function grouper(source: PartSource, { by, projectId, tokenId }: PartQuery) {
  const { tokens, projects, models } = source.subjects;
  const onlyToken = tokenId === undefined ? undefined : (tokens.find(tokenId) ?? -1);
  const onlyProject = projectId === undefined ? undefined : (projects.find(projectId) ?? -1);
  const modelEnd = models.end;
  const ends = { token: tokens.end, project: projects.end };
  const pairs = new Map<number, number>();
  const groupOf = (step: Step, cell: number): number => {
    const token = step.tokenOf(cell);
    if (onlyToken !== undefined && token !== onlyToken) return -1;
    if (by === 'token' && onlyProject === undefined) return token;
    const project = projectOf(source, token);
    if (onlyProject !== undefined && project !== onlyProject) return -1;
    if (by === 'token') return token;
    if (by === 'project') return project;
    const pair = project * modelEnd + step.modelOf(cell);
    let group = pairs.get(pair);
    if (group === undefined) pairs.set(pair, (group = pairs.size));
    return group;
  };
  return { groupOf, end: () => (by === 'model' ? pairs.size : ends[by]) };
}

const projectOf = ({ isOfProjects, subjects }: PartSource, token: number) =>
  isOfProjects ? token : subjects.projectOf(token);

/** The key to sort by of each group; NaN for a number that is no group. */
function* keysOf(source: PartSource, { sort, by }: PartQuery, grouping: Grouping) {
  const lastMsOf = lastUses(source, by);
  const keys = new Float64Array(grouping.end).fill(NaN);
  const timed = sort === 'p50' || sort === 'p95' ? sort : null;
  const times = new Uint32Array(timed ? grouping.end * BUCKETS : 0);
  let count = 0;
  yield* eachCell(source.steps, grouping, (group, step, cell) => {
    let key = keys[group] ?? NaN;
    if (Number.isNaN(key)) {
      count += 1;
      key = 0;
    }
    if (timed) step.addTimes(cell, times, group * BUCKETS);
    else if (sort === 'last_used') key = Math.max(key, lastMsOf(step, cell));
    else key += additionOf(step, cell, sort);
    keys[group] = key;
  });
  for (let group = 0; timed && group < keys.length; group += 1) {
    if (group % CELLS_PER_SLICE === 0) yield;
    if (Number.isNaN(keys[group])) continue;
    const ofGroup = times.subarray(group * BUCKETS, (group + 1) * BUCKETS);
    keys[group] = quantile(BOUNDS_MS, ofGroup, QUANTILES[timed]) ?? -1;
  }
  return { keys, count };
}

/** The last use of one model of a token is only known from the steps. */
function lastUses({ lastUseOf }: PartSource, by: TopQuery['by']): (step: Step, cell: number) => number {
  if (!lastUseOf || by === 'model') return (step, cell) => step.lastMsOf(cell);
  return (step, cell) => Math.max(step.lastMsOf(cell), lastUseOf(step.tokenOf(cell)));
}

function* groupsOf(
  source: PartSource,
  by: TopQuery['by'],
  grouping: Grouping,
  chosen: readonly number[],
): Slices<TopGroup[]> {
  const { steps, history } = source;
  const lastMsOf = lastUses(source, by);
  const groups = new Map<number, TopGroup>();
  const wanted = new Uint8Array(grouping.end);
  for (const group of chosen) wanted[group] = 1;
  const look = (number: number, step: Step, cell: number, index: number) => {
    let group = groups.get(number);
    if (!group) groups.set(number, (group = newGroup(source, step, cell, by)));
    addTo(group, step, cell);
    history.add(group, step, cell, index);
    group.lastMs = Math.max(group.lastMs, lastMsOf(step, cell));
  };
  yield* eachCell(steps, grouping, look, wanted);
  return chosen.flatMap((number) => groups.get(number) ?? []);
}

function newGroup(source: PartSource, step: Step, cell: number, by: TopQuery['by']): TopGroup {
  const { tokens, projects, models } = source.subjects;
  const { length } = source.history;
  const token = step.tokenOf(cell);
  return {
    tokenId: by === 'token' ? tokens.textOf(token) : null,
    projectId: projects.textOf(projectOf(source, token)),
    model: by === 'model' ? models.textOf(step.modelOf(cell)) : null,
    counts: COUNTS.map(() => 0),
    times: Array.from({ length: BUCKETS }, () => 0),
    lastMs: 0,
    history: Array.from({ length }, () => 0),
    failureHistory: Array.from({ length }, () => 0),
  };
}

function* totalOf(
  steps: readonly Step[],
  { projectId, tokenId }: PartQuery,
  grouping: Grouping,
): Slices<TopPart['total']> {
  const total = noSums();
  if (projectId === undefined && tokenId === undefined) for (const step of steps) addSums(total, step.total);
  else
    yield* eachCell(steps, grouping, (_, step, cell) => {
      addTo(total, step, cell);
    });
  return { counts: [...total.counts], times: [...total.times] };
}

export const QUANTILES = { p50: 0.5, p95: 0.95 } as const;

function additionOf(step: Step, cell: number, sort: TopQuery['sort']): number {
  // Of groups with equally many failures, the one with more requests comes first.
  if (sort === 'errors') return step.failuresOf(cell) + step.countOf(cell, 0) / 2 ** 32;
  if (sort === 'tokens') return step.countOf(cell, PROMPT_TOKENS) + step.countOf(cell, PROMPT_TOKENS + 1);
  return step.countOf(cell, 0);
}

function addTo({ counts, times }: Sums | TopGroup, step: Step, cell: number): void {
  for (let count = 0; count < COUNTS.length; count += 1) add(counts, count, step.countOf(cell, count));
  step.addTimes(cell, times, 0);
}

function addSums(to: Sums, { counts, times }: Sums): void {
  for (let count = 0; count < counts.length; count += 1) add(to.counts, count, counts[count] ?? 0);
  for (let bucket = 0; bucket < BUCKETS; bucket += 1) add(to.times, bucket, times[bucket] ?? 0);
}

function add(to: number[] | Float64Array, at: number, more: number): void {
  to[at] = (to[at] ?? 0) + more;
}
