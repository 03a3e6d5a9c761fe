/** What the machine is, where a process may run on it, and what a process has used. */
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs';
import { arch, cpus, platform } from 'node:os';
import { delimiter, join } from 'node:path';
import { childrenOf } from '../support/process-tree.js';

/** Core numbers in the form of `taskset -c`; null: the kernel decides. */
export interface Cores {
  /** For what is measured. */
  measured: string | null;
  /** For load and provider. */
  others: string | null;
}

const MS_PER_S = 1_000;
const TICKS_PER_S = 100; // The unit in which Linux reports CPU time to programs, on every machine Node runs on.

/** The path of a command, as a shell would find it. */
export function installed(command: string): string | null {
  // Debian installs nginx where only root's PATH leads.
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']) {
    const path = join(folder, command);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  return null;
}

export function divideCores(): Cores {
  const allowed = installed('taskset') === null ? [] : allowedCores();
  const measured = allowed.pop(); // The last one, because the kernel does more of its own work on the first.
  if (measured === undefined || allowed.length === 0) return { measured: null, others: null };
  return { measured, others: allowed.join() };
}

function allowedCores(): string[] {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, n) => String(first + n));
  });
}

export function describeMachine({ measured, others }: Cores): string {
  const { model = 'unknown' } = cpus()[0] ?? {};
  const pinning = measured === null ? 'not pinned' : `measured on core ${measured}, load and provider on ${others}`;
  return `${model} x${cpus().length}, ${platform()} ${arch()}, Node ${process.version}, ${pinning}`;
}

/** The CPU time that the living threads of a process and of all processes below it have used, to the nanosecond. */
export function treeCpuMs(pid: number): number {
  let ns = 0;
  for (const thread of readdirOrNone(`/proc/${pid}/task`)) {
    ns += Number((readProc(pid, `task/${thread}/schedstat`) ?? '0').split(' ')[0]);
  }
  const children = (readProc(pid, `task/${pid}/children`) ?? '').split(' ').filter(Boolean).map(Number);
  return children.reduce((sum, child) => sum + treeCpuMs(child), ns / 1e6);
}

function readdirOrNone(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The CPU time that a process has used so far, all its threads; null without /proc. */
export function cpuMs(pid: number): number | null {
  const stat = readProc(pid, 'stat');
  if (stat === null) return null;
  // From the third field on: the second is the command in brackets, which can contain anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_S) * MS_PER_S;
}

/**
 * Time since the start that the host of a virtual machine gave to others while a core here had work, in ms, of all cores. It delays
 * requests like a pause of the measured process. 0 without /proc.
 */
export function stolenMs(): number {
  const fields = /^cpu +(.*)$/m.exec(readStat())?.[1]?.split(' ') ?? [];
  return (Number(fields[7] ?? 0) / TICKS_PER_S) * MS_PER_S;
}

function readStat(): string {
  try {
    return readFileSync('/proc/stat', 'utf8');
  } catch {
    return '';
  }
}

const MEMORY_FIELDS = { now: 'VmRSS', highest: 'VmHWM', ofFiles: 'RssFile' } as const;

/** The resident memory of a process: now, at its highest so far, or now of the files that it has mapped; NaN without /proc. */
export function rssMb(pid: number, which: keyof typeof MEMORY_FIELDS): number {
  const field = new RegExp(`^${MEMORY_FIELDS[which]}:\\s*(\\d+) kB$`, 'm');
  return (Number(field.exec(readProc(pid, 'status') ?? '')?.[1]) * 1024) / 1e6;
}

/** The resident memory of a process and its descendants. They share the files that they map, nearly all of it Node.js: these count once. */
export function memoryOfTreeMb(pid: number): number {
  const pids = treeOf(pid);
  const own = pids.reduce((sum, each) => sum + rssMb(each, 'now') - rssMb(each, 'ofFiles'), 0);
  return own + Math.max(...pids.map((each) => rssMb(each, 'ofFiles')));
}

const treeOf = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(treeOf)];

function readProc(pid: number, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return null;
  }
}
