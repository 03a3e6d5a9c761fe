/**
 * # The last hour, by token, project and model
 *
 * For `GET /manage/top`: counts and times of /v1 requests on this instance, in steps of 30 s for the last five minutes and of 3 min
 * for the last hour. A step has a cell of about 60 bytes for each token and model that had requests in it. Together with the names,
 * all of it takes up to 32 MB by estimate, and less than twice as much as measured, whatever the traffic: beyond that the oldest steps leave early, and if there is only the current
 * step, requests are counted in the total only.
 */
import type { RequestEnded } from '../events.js';
import type { ModelNames } from '../model-names.js';
import type { Clock, RecentTopQuery, TopGroup, TopPart, TopQuery } from '../ports.js';
import { quantile } from '../histogram.js';
import { Ring } from './ring.js';
import { BOUNDS_MS, BUCKETS, COUNTS, PROMPT_TOKENS } from './counts.js';
import { noSums, type Step } from './step.js';
import { Subjects } from './subjects.js';
import { firstOf } from './selection.js';

export const MAX_TOP_BYTES = 32 * 1024 * 1024;
const DROPS_ABOVE = 0.9;

/** The windows in memory. */
export type RecentWindow = RecentTopQuery['window'];
export const RECENT_STEPS: Readonly<Record<RecentWindow, { stepMs: number; steps: number }>> = {
  '5m': { stepMs: 30_000, steps: 10 },
  '1h': { stepMs: 180_000, steps: 20 },
};

export interface RecentTopOptions {
  clock: Pick<Clock, 'now'>;
  models: ModelNames;
  /** Maximum memory in bytes. */
  maxBytes?: number;
}

export class RecentTop {
  readonly #models: ModelNames;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #maxBytes: number;
  readonly #subjects = new Subjects();
  readonly #rings: Readonly<Record<RecentWindow, Ring>>;

  constructor({ clock, models, maxBytes = MAX_TOP_BYTES }: RecentTopOptions) {
    this.#models = models;
    this.#clock = clock;
    this.#maxBytes = maxBytes;
    const makeRoom = (bytes: number) => this.#makeRoom(bytes);
    const startedAtMs = clock.now();
    const ring = (window: RecentWindow) =>
      new Ring({ ...RECENT_STEPS[window], subjects: this.#subjects, makeRoom }, startedAtMs);
    this.#rings = { '5m': ring('5m'), '1h': ring('1h') };
  }

  /** Memory of the steps and names, estimated. */
  get bytes(): number {
    return this.#rings['5m'].bytes + this.#rings['1h'].bytes + this.#subjects.bytes;
  }

  record(ended: RequestEnded): void {
    // A CORS preflight is not counted, as in the usage report.
    if (ended.tokenId === null && ended.outcome === 'ok') return;
    const model = this.#models.nameFor(ended);
    this.#rings['5m'].record(ended, model);
    this.#rings['1h'].record(ended, model);
  }

  /** The first groups of this instance, in the window that ends at that time. Takes up to about 20 ms, with 100,000 tokens. */
  part(query: RecentTopQuery, nowMs: number): TopPart {
    const ring = this.#rings[query.window];
    ring.forgetBefore(this.#clock.now());
    ring.release(Infinity);
    const steps = ring.stepsAt(nowMs);
    const grouping = this.#groupsPerStep(steps, query);
    const { keys, count } = this.#keysOf(steps, query, grouping);
    const chosen = firstOf(keys, query.limit);
    return {
      fromMs: ring.fromMs(nowMs),
      groups: this.#groupsOf(chosen, steps, query, grouping, nowMs),
      groupCount: count,
      untracked: steps.reduce((sum, step) => sum + step.untracked, 0),
      total: this.#totalOf(steps, query, grouping),
    };
  }

  #makeRoom(bytes: number): boolean {
    const { '1h': long, '5m': short } = this.#rings;
    const dropOldest = () => long.dropOldest() || short.dropOldest();
    // Early, so that the following requests can free the memory of the step little by little.
    if (this.bytes + bytes > DROPS_ABOVE * this.#maxBytes && !long.isReleasing && !short.isReleasing) dropOldest();
    while (this.bytes + bytes > this.#maxBytes) {
      if (!long.isReleasing && !short.isReleasing && !dropOldest()) return false;
      long.release(Infinity);
      short.release(Infinity);
    }
    return true;
  }

  /** The group of each cell; -1 if the query excludes it. */
  #groupOf({ by, projectId, tokenId }: RecentTopQuery): (step: Step, cell: number) => number {
    const { tokens, projects } = this.#subjects;
    const subjects = this.#subjects;
    const onlyToken = tokenId === undefined ? undefined : (tokens.find(tokenId) ?? -1);
    const onlyProject = projectId === undefined ? undefined : (projects.find(projectId) ?? -1);
    const models = subjects.models.end;
    const pairs = new Map<number, number>();
    return (step, cell) => {
      const token = step.tokenOf(cell);
      if (onlyToken !== undefined && token !== onlyToken) return -1;
      if (by === 'token' && onlyProject === undefined) return token;
      const project = subjects.projectOf(token);
      if (onlyProject !== undefined && project !== onlyProject) return -1;
      if (by === 'token') return token;
      if (by === 'project') return project;
      const pair = project * models + step.modelOf(cell);
      let group = pairs.get(pair);
      if (group === undefined) pairs.set(pair, (group = pairs.size));
      return group;
    };
  }

  #groupsPerStep(steps: readonly Step[], query: RecentTopQuery): Grouping {
    const groupOf = this.#groupOf(query);
    return steps.map((step) => {
      const groups = new Int32Array(step.cells);
      for (let cell = 0; cell < groups.length; cell += 1) groups[cell] = groupOf(step, cell);
      return groups;
    });
  }

  /** The key to sort by of each group; NaN for a number that is no group. */
  #keysOf(steps: readonly Step[], { sort, by }: RecentTopQuery, grouping: Grouping) {
    const { tokens, projects } = this.#subjects;
    const cells = steps.reduce((sum, step) => sum + step.cells, 0);
    const most = { token: tokens.end, project: projects.end, model: cells }[by];
    const keys = new Float64Array(most).fill(NaN);
    const isTimed = sort === 'p50' || sort === 'p95';
    const times = new Uint32Array(isTimed ? most * BUCKETS : 0);
    let count = 0;
    for (const [index, step] of steps.entries()) {
      const ofStep = grouping[index] ?? NO_GROUPS;
      for (let cell = 0; cell < ofStep.length; cell += 1) {
        const group = ofStep[cell] ?? -1;
        if (group < 0) continue;
        const before = keys[group] ?? NaN;
        if (Number.isNaN(before)) count += 1;
        const key = Number.isNaN(before) ? 0 : before;
        if (isTimed) {
          step.addTimes(cell, times, group * BUCKETS);
          keys[group] = key + step.countOf(cell, 0);
        } else if (sort === 'last_used') keys[group] = Math.max(key, step.lastMsOf(cell));
        else keys[group] = key + additionOf(step, cell, sort);
      }
    }
    if (isTimed) {
      const part = QUANTILES[sort];
      for (let group = 0; group < most; group += 1) {
        if (Number.isNaN(keys[group])) continue;
        const ofGroup = times.subarray(group * BUCKETS, (group + 1) * BUCKETS);
        keys[group] = quantile(BOUNDS_MS, ofGroup, part) ?? -1;
      }
    }
    return { keys, count };
  }

  #groupsOf(
    chosen: readonly number[],
    steps: readonly Step[],
    { by, window }: RecentTopQuery,
    grouping: Grouping,
    nowMs: number,
  ): TopGroup[] {
    const groups = new Map<number, TopGroup>();
    const wanted = new Uint8Array(chosen.reduce((most, group) => Math.max(most, group + 1), 0));
    for (const group of chosen) wanted[group] = 1;
    const { stepMs, steps: length } = RECENT_STEPS[window];
    const firstMs = this.#rings[window].firstMs(nowMs);
    for (const [index, step] of steps.entries()) {
      const ofStep = grouping[index] ?? NO_GROUPS;
      const at = Math.round((step.startMs - firstMs) / stepMs);
      for (let cell = 0; cell < ofStep.length; cell += 1) {
        const number = ofStep[cell] ?? -1;
        if (wanted[number] !== 1) continue;
        let group = groups.get(number);
        if (!group) groups.set(number, (group = this.#newGroup(step, cell, by, length)));
        addCell(group, step, cell, at);
      }
    }
    return chosen.flatMap((number) => groups.get(number) ?? []);
  }

  #newGroup(step: Step, cell: number, by: TopQuery['by'], length: number): TopGroup {
    const { tokens, projects, models } = this.#subjects;
    const token = step.tokenOf(cell);
    return {
      tokenId: by === 'token' ? tokens.textOf(token) : null,
      projectId: projects.textOf(this.#subjects.projectOf(token)),
      model: by === 'model' ? models.textOf(step.modelOf(cell)) : null,
      counts: COUNTS.map(() => 0),
      times: Array.from({ length: BUCKETS }, () => 0),
      lastMs: 0,
      history: Array.from({ length }, () => 0),
      failureHistory: Array.from({ length }, () => 0),
    };
  }

  #totalOf(steps: readonly Step[], { projectId, tokenId }: RecentTopQuery, grouping: Grouping) {
    const { counts, times } = noSums();
    const isFiltered = projectId !== undefined || tokenId !== undefined;
    for (const [index, step] of steps.entries()) {
      const ofStep = grouping[index] ?? NO_GROUPS;
      if (!isFiltered) {
        for (let count = 0; count < counts.length; count += 1) add(counts, count, step.total.counts[count] ?? 0);
        for (let bucket = 0; bucket < BUCKETS; bucket += 1) add(times, bucket, step.total.times[bucket] ?? 0);
        continue;
      }
      for (let cell = 0; cell < ofStep.length; cell += 1) {
        if ((ofStep[cell] ?? -1) < 0) continue;
        for (let count = 0; count < counts.length; count += 1) add(counts, count, step.countOf(cell, count));
        step.addTimes(cell, times, 0);
      }
    }
    return { counts: [...counts], times: [...times] };
  }
}

/** The group of each cell of each step; -1 if the query excludes it. */
type Grouping = readonly Int32Array[];
const NO_GROUPS = new Int32Array(0);

export const QUANTILES = { p50: 0.5, p95: 0.95 } as const;

function additionOf(step: Step, cell: number, sort: TopQuery['sort']): number {
  // Of groups with equally many failures, the one with more requests comes first.
  if (sort === 'errors') return step.failuresOf(cell) + step.countOf(cell, 0) / 2 ** 32;
  if (sort === 'tokens') return step.countOf(cell, PROMPT_TOKENS) + step.countOf(cell, PROMPT_TOKENS + 1);
  return step.countOf(cell, 0);
}

function addCell(group: TopGroup, step: Step, cell: number, at: number): void {
  for (let count = 0; count < COUNTS.length; count += 1) add(group.counts, count, step.countOf(cell, count));
  const times = new Uint32Array(BUCKETS);
  step.addTimes(cell, times, 0);
  for (let bucket = 0; bucket < BUCKETS; bucket += 1) add(group.times, bucket, times[bucket] ?? 0);
  group.lastMs = Math.max(group.lastMs, step.lastMsOf(cell));
  add(group.history, at, step.countOf(cell, 0));
  add(group.failureHistory, at, step.failuresOf(cell));
}

function add(to: number[] | Float64Array, at: number, more: number): void {
  to[at] = (to[at] ?? 0) + more;
}
