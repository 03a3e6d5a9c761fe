import type { RequestEnded } from '../events.js';
import { CellIndex } from './cell-index.js';
import type { RequestFigures } from './request-figures.js';
import { CHUNK, CHUNK_BYTES, HISTOGRAM_CHUNK_BYTES, Step } from './step.js';
import { type Subjects, TOKEN_BYTES } from './subjects.js';

export interface RingOptions {
  stepMs: number;
  /** How many steps a window has, with the current one. */
  steps: number;
  subjects: Subjects;
  /** Makes room for so many bytes, if it can. */
  makeRoom: (bytes: number) => boolean;
}

/**
 * The steps of one window, oldest first. Old ones leave when a request or a report finds that time has passed, so no timer is needed.
 * What refers to the tokens of a step that has left is released a few cells at a time, with each request.
 */
export class Ring {
  readonly stepMs: number;
  readonly steps: number;
  readonly #subjects: Subjects;
  readonly #makeRoom: (bytes: number) => boolean;
  #kept: Step[] = [];
  readonly #left: Step[] = [];
  #released = 0;
  /** Of the current step. */
  readonly #index = new CellIndex();
  /** Nothing before it is known. */
  #reachesMs: number;

  constructor({ stepMs, steps, subjects, makeRoom }: RingOptions, startedAtMs: number) {
    this.stepMs = stepMs;
    this.steps = steps;
    this.#subjects = subjects;
    this.#makeRoom = makeRoom;
    this.#reachesMs = startedAtMs;
  }

  get bytes(): number {
    let bytes = this.#index.bytes;
    for (const step of this.#kept) bytes += step.bytes;
    for (const step of this.#left) bytes += step.bytes;
    return bytes;
  }

  /** The steps of the window that ends at that time, oldest first, without those that had no requests. */
  stepsAt(nowMs: number): readonly Step[] {
    const firstMs = this.firstMs(nowMs);
    return this.#kept.filter(({ startMs }) => startMs >= firstMs && startMs <= nowMs);
  }

  /** Start of the first step of the window that ends at that time. */
  firstMs(nowMs: number): number {
    return nowMs - (nowMs % this.stepMs) - (this.steps - 1) * this.stepMs;
  }

  /** From when on requests are known, within the window that ends at that time. */
  fromMs(nowMs: number): number {
    return Math.min(nowMs, Math.max(this.firstMs(nowMs), this.#reachesMs));
  }

  record({ tokenId, projectId }: Pick<RequestEnded, 'tokenId' | 'projectId'>, model: string, figures: RequestFigures) {
    const step = this.#stepAt(figures.timeMs);
    step.addTotal(figures);
    if (tokenId !== null && projectId !== null) {
      const cell = this.#cellOf(step, tokenId, projectId, model);
      if (cell === null) step.untracked += 1;
      else step.addTo(cell, figures, this.#makeRoomForHistograms);
    }
    if (this.#left.length > 0) this.release(RELEASED_PER_REQUEST);
  }

  readonly #makeRoomForHistograms = () => this.#makeRoom(HISTOGRAM_CHUNK_BYTES);

  /** Releases what refers to the tokens of steps that have left, unless a report needs it. */
  release(cells: number): void {
    if (this.#subjects.isPinned) return;
    for (let done = 0; done < cells; done += 1) {
      const step = this.#left[0];
      if (!step) return;
      if (this.#released < step.cells) {
        this.#subjects.releaseToken(step.tokenOf(this.#released));
        this.#subjects.models.release(step.modelOf(this.#released));
        this.#released += 1;
      }
      if (this.#released >= step.cells) {
        this.#left.shift();
        this.#released = 0;
      }
    }
  }

  /** A step has left whose memory is not free yet. */
  get isReleasing(): boolean {
    return this.#left.length > 0;
  }

  /** Drops the oldest step, unless it is the current one. */
  dropOldest(): boolean {
    if (this.#kept.length < 2) return false;
    const oldest = this.#kept.shift();
    if (!oldest) return false;
    this.#reachesMs = Math.max(this.#reachesMs, oldest.startMs + this.stepMs);
    this.#left.push(oldest);
    return true;
  }

  /** Drops the steps that no window contains any more. */
  forgetBefore(nowMs: number): void {
    const firstMs = this.firstMs(nowMs);
    while (this.#kept[0] && this.#kept[0].startMs < firstMs) this.#left.push(...this.#kept.splice(0, 1));
  }

  #stepAt(timeMs: number): Step {
    const startMs = timeMs - (timeMs % this.stepMs);
    const current = this.#kept.at(-1);
    if (current) {
      if (startMs === current.startMs) return current;
      // Records may arrive a little late; but if the clock was set back, what is later than now is worthless.
      if (startMs < current.startMs && current.startMs - startMs <= this.stepMs) return current;
      if (startMs < current.startMs) {
        this.#left.push(...this.#kept.splice(0));
        this.#reachesMs = timeMs;
      }
    }
    const step = new Step(startMs);
    this.#kept.push(step);
    this.forgetBefore(timeMs);
    this.#index.clear();
    return step;
  }

  /** Null if there is no room for another cell. */
  #cellOf(step: Step, tokenId: string, projectId: string, model: string): number | null {
    const { tokens, models } = this.#subjects;
    const token = tokens.find(tokenId);
    const modelNumber = models.find(model);
    if (token !== undefined && modelNumber !== undefined) {
      const found = this.#index.find(step, token, modelNumber);
      if (found >= 0) return found;
    }
    // Until the chunk is full, its tokens may be new, also to the other ring, and there may be too few slots.
    if (step.isFull && !this.#makeRoom(CHUNK_BYTES + 2 * CHUNK * TOKEN_BYTES + this.#index.bytes)) return null;
    const cell = step.addCell(this.#subjects.retainToken(tokenId, projectId), models.retain(model));
    this.#index.add(step, cell);
    return cell;
  }
}

const RELEASED_PER_REQUEST = 16;
