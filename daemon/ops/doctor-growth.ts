/** Doctor checks of whether one machine with SQLite is still enough. */
import { stat } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import { bytes } from '../api/formats.js';
import { isLocked } from '../store/lock.js';
import { shareOfWriting } from '../store/sql/sqlite.js';
import { type Finding, warning } from './doctor-finding.js';

export interface Growth {
  /** The part of the time in which the database is locked for writing. */
  writing: number;
  /** In bytes. */
  size: number;
  workers: number;
  cores: number;
  /** Mean number of busy cores in the last 15 minutes. */
  load: number;
}

const TRIES = 20;
const EVERY_MS = 25;
/** From here on, writes wait for each other noticeably. */
const MUCH_WRITING = 0.5;
/** From here on, a backup or a copy takes a quarter of an hour. */
const LARGE = 20 * 2 ** 30;
const BUSY = 0.9;

export async function growthOf(path: string, workers: number): Promise<Growth> {
  const [{ size }, isUsed] = await Promise.all([stat(path), isLocked(path)]);
  return {
    writing: isUsed ? await shareOfWriting(path, TRIES, EVERY_MS) : 0,
    size,
    workers,
    cores: availableParallelism(),
    load: loadavg()[2] ?? 0,
  };
}

/** @returns a finding for each reason to move to a database server. */
export function growthFindings({ writing, size, workers, cores, load }: Growth): Finding[] {
  const reasons = [
    [writing >= MUCH_WRITING, `SQLite is writing ${Math.round(100 * writing)} % of the time, so that changes wait`],
    [size >= LARGE, `the database has ${bytes(size)}, so that copying it takes long`],
    [workers >= cores && load >= BUSY * cores, `WORKERS=${workers} uses all ${cores} cores, which are busy`],
  ] as const;
  return reasons
    .filter(([isReason]) => isReason)
    .map(([, evidence]) =>
      warning('growth', evidence, 'Move to a database server and several instances: llmp migrate copy --help'),
    );
}
