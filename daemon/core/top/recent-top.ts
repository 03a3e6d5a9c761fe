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
import { inSlices } from '../in-slices.js';
import type { Clock, RecentTopQuery, TopPart } from '../ports.js';
import { historyOfSteps, partOf } from './part.js';
import { RequestFigures } from './request-figures.js';
import { Ring } from './ring.js';
import { Subjects } from './subjects.js';

export const MAX_TOP_BYTES = 32 * 1024 * 1024;
const DROPS_ABOVE = 0.9;
const RELEASED_PER_SLICE = 2_048;

/** The windows in memory. */
export type RecentWindow = RecentTopQuery['window'];
export const RECENT_STEPS: Readonly<Record<RecentWindow, { stepMs: number; steps: number }>> = {
  '5m': { stepMs: 30_000, steps: 10 },
  '1h': { stepMs: 180_000, steps: 20 },
};

export interface RecentTopOptions {
  clock: Pick<Clock, 'now' | 'monotonic'>;
  models: ModelNames;
  /** Maximum memory in bytes. */
  maxBytes?: number;
}

export class RecentTop {
  readonly #models: ModelNames;
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly #maxBytes: number;
  readonly #subjects = new Subjects();
  readonly #figures = new RequestFigures();
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
    this.#figures.fill(ended);
    this.#rings['5m'].record(ended, model, this.#figures);
    this.#rings['1h'].record(ended, model, this.#figures);
  }

  /** The first groups of this instance, in the window that ends at that time. Other work runs in between, see part.ts. */
  async part(query: RecentTopQuery, nowMs: number): Promise<TopPart> {
    await inSlices(this.#clock, this.#releaseInSlices());
    return this.#subjects.pinnedWhile(() => inSlices(this.#clock, this.partInSlices(query, nowMs)));
  }

  /** Without requests, steps that have left stay until then. */
  *#releaseInSlices(): Generator<void, void> {
    for (const ring of Object.values(this.#rings)) {
      ring.forgetBefore(this.#clock.now());
      while (ring.isReleasing && !this.#subjects.isPinned) {
        ring.release(RELEASED_PER_SLICE);
        yield;
      }
    }
  }

  /** The same, in slices; the subjects must be pinned. */
  *partInSlices({ window, ...query }: RecentTopQuery, nowMs: number): Generator<void, TopPart> {
    const ring = this.#rings[window];
    ring.forgetBefore(this.#clock.now());
    const { stepMs, steps } = RECENT_STEPS[window];
    const history = historyOfSteps(ring.firstMs(nowMs), stepMs, steps);
    const source = { steps: ring.stepsAt(nowMs), subjects: this.#subjects, fromMs: ring.fromMs(nowMs), history };
    return yield* partOf(source, query);
  }

  #makeRoom(bytes: number): boolean {
    const { '1h': long, '5m': short } = this.#rings;
    const dropOldest = () => long.dropOldest() || short.dropOldest();
    // Early, so that the following requests can free the memory of the step little by little.
    if (this.bytes + bytes > DROPS_ABOVE * this.#maxBytes && !long.isReleasing && !short.isReleasing) dropOldest();
    while (this.bytes + bytes > this.#maxBytes) {
      if (this.#subjects.isPinned) return false; // Not even for as long as a page takes.
      if (!long.isReleasing && !short.isReleasing && !dropOldest()) return false;
      long.release(Infinity);
      short.release(Infinity);
    }
    return true;
  }
}
