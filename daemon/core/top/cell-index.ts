import type { Step } from './step.js';

const FIRST_SLOTS = 1024;

/** The cells of a step by token and model: open addressing; each slot has a cell plus 1, or 0. */
export class CellIndex {
  #slots = new Int32Array(FIRST_SLOTS);

  get bytes(): number {
    return this.#slots.byteLength;
  }

  clear(): void {
    this.#slots.fill(0);
  }

  /** The cell of a token and model; -1 without one. */
  find(step: Step, token: number, model: number): number {
    return (this.#slots[this.#slotOf(step, token, model)] ?? 0) - 1;
  }

  /** Adds the last cell of the step. */
  add(step: Step, cell: number): void {
    if (step.cells * 2 > this.#slots.length) this.#grow(step);
    else this.#slots[this.#slotOf(step, step.tokenOf(cell), step.modelOf(cell))] = cell + 1;
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

  #grow(step: Step): void {
    this.#slots = new Int32Array(this.#slots.length * 2);
    for (let cell = 0; cell < step.cells; cell += 1) {
      this.#slots[this.#slotOf(step, step.tokenOf(cell), step.modelOf(cell))] = cell + 1;
    }
  }
}
