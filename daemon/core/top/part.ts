/**
 * The part of a top report that is computed from steps. A hundred thousand tokens have so many cells that looking at all of them at
 * once would delay requests, so it yields after each slice.
 */
import type { TopGroup, TopPart, TopQuery } from '../ports.js';
import { BUCKETS, COUNTS } from './counts.js';
import { firstOf } from './selection.js';
import { SortKeys } from './sort-keys.js';
import { SpareMemory } from './spare-memory.js';
import { CELLS_PER_SLICE, noSums, type Step, type Sums } from './step.js';
import type { Subjects } from './subjects.js';

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

const keyMemory = new SpareMemory();
const groupMemory = new SpareMemory();

/** The first groups in the order of the query. */
export function* partOf(source: PartSource, query: PartQuery): Slices<TopPart> {
  const { steps, fromMs } = source;
  // Before the first yield, as the ends of the numbers: the last step may get cells of new subjects meanwhile.
  const cells = steps.map((step) => step.cells);
  const ofCells = groupMemory.take(cells.reduce((sum, count) => sum + count, 0) * Int32Array.BYTES_PER_ELEMENT);
  const grouping = yield* groupingOf(source, query, cells, ofCells);
  const ofGroups = keyMemory.take(grouping.end * Float64Array.BYTES_PER_ELEMENT);
  const keys = new Float64Array(ofGroups, 0, grouping.end).fill(NaN);
  const count = yield* fillKeys(source, query, grouping, keys);
  const chosen = yield* firstOf(keys, query.limit, CELLS_PER_SLICE);
  // The keys are no longer needed, but their memory is: it says which groups are chosen.
  keys.fill(0);
  for (const group of chosen) keys[group] = 1;
  const groups = yield* groupsOf(source, query.by, grouping, keys, chosen);
  keyMemory.give(ofGroups);
  const total = yield* totalOf(steps, query, grouping);
  groupMemory.give(ofCells);
  const untracked = steps.reduce((sum, step) => sum + step.untracked, 0);
  return { fromMs, groups, groupCount: count, untracked, total };
}

/** Calls `look` with the groups of each slice of cells. */
function* eachSlice(
  steps: readonly Step[],
  { groups }: Pick<Grouping, 'groups'>,
  look: (step: Step, from: number, groups: Int32Array, index: number) => void,
): Slices<void> {
  for (const [index, step] of steps.entries()) {
    const ofStep = groups[index] ?? NO_GROUPS;
    for (let from = 0; from < ofStep.length; from += CELLS_PER_SLICE) {
      look(step, from, ofStep.subarray(from, from + CELLS_PER_SLICE), index);
      yield;
    }
  }
}
const NO_GROUPS = new Int32Array(0);

/** @param memory for the group of each cell. */
function* groupingOf(
  source: PartSource,
  query: PartQuery,
  cells: readonly number[],
  memory: ArrayBuffer,
): Slices<Grouping> {
  const { readGroups, end } = grouper(source, query);
  let before = 0;
  const groups = cells.map((count) => {
    const ofStep = new Int32Array(memory, before, count);
    before += ofStep.byteLength;
    return ofStep;
  });
  yield* eachSlice(source.steps, { groups }, readGroups);
  return { groups, end: end() };
}

/** @returns a function that writes the groups of cells, starting with the one `from`. */
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
    const project = projectOf(source, token);
    if (onlyProject !== undefined && project !== onlyProject) return -1;
    if (by === 'token') return token;
    if (by === 'project') return project;
    const pair = project * modelEnd + step.modelOf(cell);
    let group = pairs.get(pair);
    if (group === undefined) pairs.set(pair, (group = pairs.size));
    return group;
  };
  const areTokens = by === 'token' && onlyToken === undefined && onlyProject === undefined;
  const readGroups = (step: Step, from: number, groups: Int32Array) => {
    if (areTokens) step.readTokens(from, groups);
    else for (let n = 0; n < groups.length; n += 1) groups[n] = groupOf(step, from + n);
  };
  return { readGroups, end: () => (by === 'model' ? pairs.size : ends[by]) };
}

const projectOf = ({ isOfProjects, subjects }: PartSource, token: number) =>
  isOfProjects ? token : subjects.projectOf(token);

/** @returns the number of groups. */
function* fillKeys(
  { steps, lastUseOf }: PartSource,
  { sort, by }: PartQuery,
  grouping: Grouping,
  to: Float64Array,
): Slices<number> {
  // When a token last used one of its models is only known from the steps.
  const keys = new SortKeys(sort, to, by === 'model' ? null : (lastUseOf ?? null));
  yield* eachSlice(steps, grouping, (step, from, groups) => {
    keys.add(step, from, groups);
  });
  return yield* keys.complete();
}

/** @param marks 1 for each group that is chosen. */
function* groupsOf(
  source: PartSource,
  by: TopQuery['by'],
  grouping: Grouping,
  marks: Float64Array,
  chosen: readonly number[],
): Slices<TopGroup[]> {
  const { steps, history, lastUseOf } = source;
  const groups = new Map<number, TopGroup>();
  yield* eachSlice(steps, grouping, (step, from, ofCells, index) => {
    for (const n of markedOf(ofCells, marks)) {
      const [cell, number] = [from + n, ofCells[n] ?? 0];
      let group = groups.get(number);
      if (!group) groups.set(number, (group = newGroup(source, step, cell, by)));
      addTo(group, step, cell);
      history.add(group, step, cell, index);
      group.lastMs = Math.max(group.lastMs, step.lastMsOf(cell));
      if (lastUseOf && by !== 'model') group.lastMs = Math.max(group.lastMs, lastUseOf(step.tokenOf(cell)));
    }
  });
  return chosen.flatMap((number) => groups.get(number) ?? []);
}

/** The places in `groups` of those that are marked. */
function markedOf(groups: Int32Array, marks: Float64Array): number[] {
  const places: number[] = [];
  for (let n = 0; n < groups.length; n += 1) {
    const group = groups[n] ?? -1;
    if (group >= 0 && marks[group] === 1) places.push(n);
  }
  return places;
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
    yield* eachSlice(steps, grouping, (step, from, groups) => {
      for (let n = 0; n < groups.length; n += 1) if ((groups[n] ?? -1) >= 0) addTo(total, step, from + n);
    });
  return { counts: [...total.counts], times: [...total.times] };
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
