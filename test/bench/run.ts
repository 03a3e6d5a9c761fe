/** What every profile gets and returns. */
import type { Figure, Row } from './figures.js';
import type { Cores } from './machine.js';
import type { Options } from './options.js';
import type { Processes } from './processes.js';

export interface Bench {
  cores: Cores;
  options: Options;
  processes: Processes;
  /** The executable of Node.js that runs the daemon and the baselines. */
  node: string;
}

export interface Report {
  /** What was measured, for the first table. */
  rows?: Row[];
  figures: Figure[];
  /** What to know before trusting them. */
  warning?: string | undefined;
}

export type Profile = (bench: Bench) => Promise<Report>;
