/** The memory of an attacked daemon and its workers, while it is attacked. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rssMb, memoryOfTreeMb } from '../../../bench/machine.js';
import { forgetPeak } from '../measured-daemon.js';
import type { HeapSize } from './heap-probe.js';

const SAMPLE_EVERY_MS = 100;

/** In MB of 10^6 bytes. */
export interface Sizes {
  /** Of all processes together. */
  rssMb: number;
  /** The largest of any process, and so is `externalMb`. */
  heapMb: number;
  externalMb: number;
}

/** Watches the memory of a daemon and its workers. */
export class Memory {
  readonly #pid: number;
  readonly #folder: string;
  readonly #timer: NodeJS.Timeout;
  #peak: Sizes = { rssMb: 0, heapMb: 0, externalMb: 0 };

  constructor(pid: number, folder: string) {
    this.#pid = pid;
    this.#folder = folder;
    this.#timer = setInterval(() => {
      this.#sample();
    }, SAMPLE_EVERY_MS);
  }

  /** The process IDs of the daemon and its workers. */
  processes(): number[] {
    return readdirSync(this.#folder)
      .map(Number)
      .filter((pid) => !Number.isNaN(rssMb(pid, 'now')));
  }

  now(): Sizes {
    const heaps = readdirSync(this.#folder).map((name) => heapOf(join(this.#folder, name)));
    return {
      rssMb: memoryOfTreeMb(this.#pid),
      heapMb: Math.max(0, ...heaps.map(({ heapMb }) => heapMb)),
      externalMb: Math.max(0, ...heaps.map(({ externalMb }) => externalMb)),
    };
  }

  forget(): void {
    for (const pid of this.processes()) forgetPeak(pid);
    this.#peak = this.now();
  }

  stop(): Sizes {
    clearInterval(this.#timer);
    return this.#peak;
  }

  #sample(): void {
    const { rssMb: sumMb, heapMb, externalMb } = this.now();
    // The kernel knows the peak of one process exactly.
    const [only, ...others] = this.processes();
    const highestMb = only !== undefined && others.length === 0 ? rssMb(only, 'highest') : sumMb;
    const largest = (a: number, b: number) => (Number.isNaN(b) ? a : Math.max(a, b));
    this.#peak = {
      rssMb: largest(this.#peak.rssMb, highestMb),
      heapMb: largest(this.#peak.heapMb, heapMb),
      externalMb: largest(this.#peak.externalMb, externalMb),
    };
  }
}

function heapOf(path: string): HeapSize {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as HeapSize;
  } catch {
    return { heapMb: 0, externalMb: 0 }; // It is being written.
  }
}
