import { inspect } from 'node:util';

const MASK = '••••••••';

/** A secret on its way from the daemon to the operator's eyes: no dump of what holds it shows it. */
export class Hidden {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** For the one place that shows it, and those that send or keep it. */
  reveal(): string {
    return this.#value;
  }

  get length(): number {
    return this.#value.length;
  }

  toString(): string {
    return MASK;
  }
  toJSON(): string {
    return MASK;
  }
  [inspect.custom](): string {
    return MASK;
  }
}
