import type { RequestEnded } from '../events.js';
import type { RequestFigures } from './request-figures.js';
import { CHUNK, CHUNK_BYTES, HISTOGRAM_CHUNK_BYTES, Step } from './step.js';
import { type Subjects, TOKEN_BYTES } from './subjects.js';

const FIRST_SLOTS = 1024;

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
  /** Cells of the current step by token and model: open addressing; each slot has a cell plus 1, or 0. */
  #slots = new Int32Array(FIRST_SLOTS);
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
    let bytes = this.#slots.byteLength;
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
    this.#slots.fill(0);
    return step;
  }

  /** Null if there is no room for another cell. */
  #cellOf(step: Step, tokenId: string, projectId: string, model: string): number | null {
    const { tokens, models } = this.#subjects;
    const token = tokens.find(tokenId);
    const modelNumber = models.find(model);
    if (token !== undefined && modelNumber !== undefined) {
      const found = this.#slots[this.#slotOf(step, token, modelNumber)] ?? 0;
      if (found > 0) return found - 1;
    }
    // Until the chunk is full, its tokens may be new, also to the other ring, and there may be too few slots.
    if (step.isFull && !this.#makeRoom(CHUNK_BYTES + 2 * CHUNK * TOKEN_BYTES + this.#slots.byteLength)) return null;
    const cell = step.addCell(this.#subjects.retainToken(tokenId, projectId), models.retain(model));
    if (step.cells * 2 > this.#slots.length) this.#growSlots(step);
    else this.#slots[this.#slotOf(step, step.tokenOf(cell), step.modelOf(cell))] = cell + 1;
    return cell;
  }

  /** The slot of a token and model, or the free one where it would be. */
  #slotOf(step: Step, token: number, model: number): number {
    const mask = this.#slots.length - 1;
    let slot = (Math.imul(token, 0x9e3779b1) ^ Math.imul(model, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const cell = (this.#slots[slot] ?? 0) - 1;
      if (cell < 0 || (step.tokenOf(cell) === token && step.modelOf(cell) === model)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #growSlots(step: Step): void {
    this.#slots = new Int32Array(this.#slots.length * 2);
    for (let cell = 0; cell < step.cells; cell += 1) {
      this.#slots[this.#slotOf(step, step.tokenOf(cell), step.modelOf(cell))] = cell + 1;
    }
  }
}

const RELEASED_PER_REQUEST = 16;
