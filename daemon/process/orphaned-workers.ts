/**
 * Workers whose primary has been killed. They end by themselves as soon as they notice; but one that is frozen (SIGSTOP, a debugger) cannot, and keeps
 * the address busy, and the database too if it was writing. The next daemon ends it: nothing is lost, since it would only end.
 *
 * Linux only. Elsewhere none are found.
 */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { type Log, StoreUnavailable } from '../core/ports.js';

/** The argument of a worker's command line that says who started it. */
export const primaryArgument = (pid: number): string => `--llmp-primary=${pid}`;

const PRIMARY = /^--llmp-primary=(\d+)$/;

const FREE_WITHIN_MS = 1_000;
const TRY_EVERY_MS = 20;

interface Logging {
  log: Pick<Log, 'warn'>;
}

/** Listens. If the address is in use and such workers were left behind, ends them and tries again. @throws the error of `listen`. */
export const listenDespiteOrphans = <T>(context: Logging, listen: () => Promise<T>): Promise<T> =>
  despiteOrphans(context, listen, (error) => (error as NodeJS.ErrnoException).code === 'EADDRINUSE');

/** Begins to use the database. If it is locked and such workers were left behind, does the same. @throws the error of `begin`. */
export const beginDespiteOrphans = <T>(context: Logging, begin: () => Promise<T>): Promise<T> =>
  despiteOrphans(
    context,
    begin,
    (error) => error instanceof StoreUnavailable && error.message.startsWith('SQLITE_BUSY'),
  );

async function despiteOrphans<T>(
  { log }: Logging,
  attempt: () => Promise<T>,
  isBlocked: (error: unknown) => boolean,
): Promise<T> {
  let untilMs: number | null = null;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isBlocked(error)) throw error;
      if (untilMs === null && endOrphans(log) === 0) throw error;
      untilMs ??= performance.now() + FREE_WITHIN_MS;
      if (performance.now() > untilMs) throw error;
      // Unlike the timers of the clock, it keeps the process alive: nothing else does yet.
      await setTimeout(TRY_EVERY_MS);
    }
  }
}

/** @returns how many there were. */
function endOrphans(log: Pick<Log, 'warn'>): number {
  const orphans = pidsHere().filter(isOrphanedWorker);
  for (const pid of orphans) {
    try {
      process.kill(pid, 'SIGKILL');
      log.warn('ended a worker that a killed daemon had left frozen', { pid });
    } catch {
      // It has ended meanwhile.
    }
  }
  return orphans.length;
}

function pidsHere(): number[] {
  if (process.platform !== 'linux') return [];
  try {
    // `/proc` may be that of another PID namespace, whose numbers mean other processes here.
    if (readlinkSync('/proc/self') !== String(process.pid)) return [];
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function isOrphanedWorker(pid: number): boolean {
  try {
    const primary = PRIMARY.exec(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').at(-2) ?? '')?.[1];
    if (primary === undefined || statSync(`/proc/${pid}`).uid !== process.getuid?.()) return false;
    // Not a process that only names one, such as a search for it.
    if (readlinkSync(`/proc/${pid}/exe`) !== readlinkSync('/proc/self/exe')) return false;
    // In another namespace PIDs have other meanings.
    if (readlinkSync(`/proc/${pid}/ns/pid`) !== readlinkSync('/proc/self/ns/pid')) return false;
    return parentOf(pid) !== Number(primary);
  } catch {
    return false; // It has ended, or belongs to another user.
  }
}

/** The fields after the name of the program, which may contain spaces and parentheses: state, parent, and more. */
function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}
