import { inspect } from 'node:util';

const MASK = '••••••••';

/** Wrapper of a secret: printing, inspecting or serialising it shows a mask. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The plain secret, for the code that shows, sends or writes it. */
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

/** What to search tokens by: a secret, or what is shown of one. */
export type SecretSearch = { secret: Secret } | { shown: string };
