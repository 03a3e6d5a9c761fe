/** Every operation in progress waits at a gate until the seed lets it through, so that every order of events can happen. */
export type Random = () => number;

export interface Gate {
  /** For the reader of a trace. */
  label: string;
  /** Continues only after many others, so that long operations meet short ones. */
  isSlow: boolean;
  pass(): void;
}

export class Gates {
  readonly #random: Random;
  readonly waiting: Gate[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  /** @returns a function that removes the gate without passing it. */
  add(label: string, action: () => void): () => void {
    const gate: Gate = {
      label,
      isSlow: this.#random() < 0.15,
      pass: () => {
        remove();
        action();
      },
    };
    const remove = () => {
      const at = this.waiting.indexOf(gate);
      if (at !== -1) this.waiting.splice(at, 1);
    };
    this.waiting.push(gate);
    return remove;
  }

  through(label: string): Promise<void> {
    return new Promise((resolve) => {
      this.add(label, resolve);
    });
  }

  /** Those that were there and have not been passed yet. */
  stillWaiting(among: readonly Gate[]): boolean {
    return among.some((gate) => this.waiting.includes(gate));
  }
}

export interface Chooser {
  chance: (probability: number) => boolean;
  /** One of them. */
  one: <T>(from: readonly T[]) => T;
}

export function chooserOf(random: Random): Chooser {
  return {
    chance: (probability) => random() < probability,
    one<T>(from: readonly T[]): T {
      const chosen = from[Math.floor(random() * from.length)];
      if (chosen === undefined) throw new Error('nothing to choose from');
      return chosen;
    },
  };
}

/** An event that must never happen. */
export class Violation extends Error {
  override name = 'Violation';
}
