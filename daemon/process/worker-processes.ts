/**
 * The processes of the workers. One that ends is replaced: at once, and after a pause if others have ended shortly before. If too many end in a
 * minute, no worker can run here, and the daemon gives up.
 *
 * The workers accept connections themselves (`SCHED_NONE`). Handing them out in turn spreads a few connections more evenly, but a connection that is
 * on its way to a worker that ends would never be served nor closed, a frozen worker would get some, and the primary would be part of every accept.
 */
import cluster, { type Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import { getHeapStatistics } from 'node:v8';
import type { Clock, Log } from '../core/ports.js';
import { primaryArgument } from './orphaned-workers.js';

/** More if there are more workers: the end of all of them at once, such as for lack of memory, is not the end of the daemon. */
const MAX_DEATHS = 5;
const DEATHS_WITHIN_MS = 60_000;
const FIRST_PAUSE_MS = 100;
const PROGRAM = fileURLToPath(new URL('../worker/main.js', import.meta.url));
const MIN_HEAP_MB = 256;
const KEEP_ALIVE_MS = 3_600_000;

/** A worker that was started. */
export interface StartedWorker {
  readonly number: number;
  readonly pid: number;
  readonly startedAtMs: number;
  post(batch: unknown, onTaken?: () => void): void;
  onBatch(listener: (batch: unknown) => void): void;
  kill(): void;
  readonly ended: Promise<void>;
}

export interface WorkerProcessesOptions {
  count: number;
  /** Options of Node with which this process was started. */
  execArgv: readonly string[];
  clock: Clock;
  log: Log;
  onStarted: (worker: StartedWorker) => void;
}

export class WorkerProcesses {
  readonly #options: WorkerProcessesOptions;
  readonly #living = new Map<number, StartedWorker>();
  #deathsMs: number[] = [];
  #isStopping = false;
  /** A primary does not listen, so without workers nothing else keeps the process alive until they are replaced, or the daemon has stopped. */
  #keepsAlive: NodeJS.Timeout | undefined;
  #fail: (error: Error) => void = () => undefined;
  /** Rejects when too many workers have ended. */
  readonly failed: Promise<never>;

  constructor(options: WorkerProcessesOptions) {
    this.#options = options;
    this.failed = new Promise((_resolve, reject) => (this.#fail = reject));
    this.failed.catch(() => undefined); // Not an unhandled rejection if no caller awaits it.
  }

  begin(): void {
    const { count, execArgv } = this.#options;
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({
      exec: PROGRAM,
      args: [primaryArgument(process.pid)],
      execArgv: [...execArgv, ...heapOptions(count, execArgv)],
      serialization: 'advanced',
    });
    this.#keepsAlive = setInterval(() => undefined, KEEP_ALIVE_MS);
    for (let number = 1; number <= count; number++) this.#start(number);
  }

  /** From now on workers that end are not replaced. */
  stopReplacing(): void {
    this.#isStopping = true;
  }

  /** Waits until all workers have ended; after `ms` ends them. */
  async end(ms: number): Promise<void> {
    this.#isStopping = true;
    const cancel = this.#options.clock.after(ms, () => {
      for (const worker of this.#living.values()) worker.kill();
    });
    await Promise.all([...this.#living.values()].map(({ ended }) => ended));
    cancel();
    clearInterval(this.#keepsAlive);
  }

  #start(number: number): void {
    if (this.#isStopping) return;
    const { clock, log, onStarted } = this.#options;
    const forked = cluster.fork();
    const ended = new Promise<void>((resolve) => {
      forked.once('exit', (code: number | null, signal: string | null) => {
        this.#living.delete(number);
        resolve();
        if (this.#isStopping) return;
        log.error('a worker has ended', { worker: number, pid: forked.process.pid, code, signal });
        this.#replace(number);
      });
    });
    // Sending to a worker that has just ended.
    forked.on('error', (error) => {
      log.debug('cannot send to a worker', { worker: number, error });
    });
    const worker = startedWorker(forked, number, clock.now(), ended);
    this.#living.set(number, worker);
    onStarted(worker);
  }

  #replace(number: number): void {
    const { clock } = this.#options;
    const nowMs = clock.monotonic();
    this.#deathsMs = [...this.#deathsMs.filter((atMs) => nowMs - atMs < DEATHS_WITHIN_MS), nowMs];
    const deaths = this.#deathsMs.length;
    if (deaths >= Math.max(MAX_DEATHS, this.#options.count + 1)) {
      this.#isStopping = true;
      this.#fail(new Error(`${deaths} workers ended within a minute`));
      return;
    }
    clock.after(deaths === 1 ? 0 : FIRST_PAUSE_MS * 2 ** deaths, () => {
      this.#start(number);
    });
  }
}

/** All workers together may take as much memory as one process would, unless the operator has set a limit. */
function heapOptions(count: number, execArgv: readonly string[]): string[] {
  if (execArgv.some((option) => /^--max[-_]old[-_]space[-_]size=/.test(option))) return [];
  const megabytes = Math.floor(getHeapStatistics().heap_size_limit / count / 2 ** 20);
  return [`--max-old-space-size=${Math.max(MIN_HEAP_MB, megabytes)}`];
}

function startedWorker(forked: Worker, number: number, startedAtMs: number, ended: Promise<void>): StartedWorker {
  // A process drops the messages that arrive before its program has a listener; so they wait until it has sent one.
  let waiting: unknown[] | null = [];
  const post = (batch: unknown, onTaken?: () => void) => {
    // Without a callback a failure would be an error event of the process.
    if (forked.isConnected()) forked.process.send(batch as object, () => onTaken?.());
  };
  forked.once('message', () => {
    const batches = waiting ?? [];
    waiting = null;
    for (const batch of batches) post(batch);
  });
  return {
    number,
    pid: forked.process.pid ?? 0,
    startedAtMs,
    post: (batch, onTaken) => {
      if (waiting) waiting.push(batch);
      else post(batch, onTaken);
    },
    onBatch: (listener) => {
      forked.on('message', listener);
    },
    kill: () => {
      forked.process.kill('SIGKILL');
    },
    ended,
  };
}
