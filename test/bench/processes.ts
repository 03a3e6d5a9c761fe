/** The processes of a run: started, watched, and ended whatever happens. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Program {
  /** The name in error messages. */
  name: string;
  command: string;
  args: readonly string[];
  env?: Record<string, string>;
  /** In the form of `taskset -c`; null: any. */
  cores: string | null;
}

/** A program that serves HTTP. */
export interface Service {
  name: string;
  pid: number;
  url: string;
  /** Stops it in its own way, and waits until it has ended. */
  stop(): Promise<void>;
}

/** How to know that a service listens: it prints a line with the address, or it responds there. */
export type Readiness = { prints: RegExp } | { answersAt: string };

/** An expected failure, whose message needs no stack. */
export class Failure extends Error {}

const START_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 10_000;
const POLL_EVERY_MS = 20;
const DEATH_KNOWN_WITHIN_MS = 1_000;
const MOST_OUTPUT = 64 * 1024; // The number of characters of output that are kept for error messages.

export class Processes {
  readonly #children = new Set<Child>();
  #isEnding = false;
  #onDeath: (error: Error) => void = () => undefined;
  readonly #aDeath = new Promise<never>((_resolve, reject) => {
    this.#onDeath = reject;
  });

  constructor() {
    this.#aDeath.catch(() => undefined); // Perhaps no caller waits for it.
  }

  /** Starts a service and waits until it listens. @throws with its output, if it ends instead. */
  async start(program: Program, readiness: Readiness): Promise<Service> {
    const child = this.#spawn(program);
    const { name } = program;
    void child.exit.then((how) => {
      if (!child.isStopping) this.#onDeath(new Failure(`${name} ended (${how}): ${child.output}`));
    });
    const url = await this.whileAllLive(
      'answersAt' in readiness ? answering(child, readiness.answersAt) : printed(child, readiness.prints),
      START_TIMEOUT_MS,
      () => `${name} does not listen after ${START_TIMEOUT_MS} ms: ${child.output}`,
    );
    return { name, pid: child.pid, url, stop: () => child.stop() };
  }

  /** Runs a program to its end. @returns its output. @throws if it fails or takes too long. */
  async run(program: Program, timeoutMs: number): Promise<string> {
    const child = this.#spawn(program);
    const late = () => `${program.name} has not ended after ${timeoutMs} ms: ${child.output}`;
    try {
      const how = await this.whileAllLive(child.exit, timeoutMs, late);
      if (how !== 'code 0') throw new Failure(`${program.name} failed (${how}): ${child.output}`);
      return child.output;
    } finally {
      await child.stop();
    }
  }

  /** Waits for `work` while every service lives. */
  async whileAllLive<T>(work: Promise<T>, timeoutMs: number, late: () => string): Promise<T> {
    const over = new AbortController();
    const timeout = sleep(timeoutMs, undefined, { signal: over.signal }).then(() => {
      throw new Failure(late());
    });
    timeout.catch(() => undefined);
    try {
      return await Promise.race([work, timeout, this.#aDeath]);
    } finally {
      over.abort();
    }
  }

  /** @returns the end of a service, if that caused `error`: a connection breaks before the end is known. */
  async reasonFor(error: unknown): Promise<unknown> {
    try {
      return await this.whileAllLive(sleep(DEATH_KNOWN_WITHIN_MS, error), 2 * DEATH_KNOWN_WITHIN_MS, () => '');
    } catch (death) {
      return death;
    }
  }

  /** Ends everything that still runs. Nothing starts afterwards. */
  async endAll(): Promise<void> {
    this.#isEnding = true;
    await Promise.all([...this.#children].map((child) => child.stop()));
  }

  #spawn(program: Program): Child {
    if (this.#isEnding) throw new Failure('interrupted');
    const child = new Child(program);
    this.#children.add(child);
    void child.exit.then(() => this.#children.delete(child));
    return child;
  }
}

class Child {
  readonly exit: Promise<string>;
  readonly #process: ChildProcess;
  isStopping = false;
  hasEnded = false;
  output = '';
  onOutput: () => void = () => undefined;

  constructor({ command, args, env, cores }: Program) {
    const pinned = cores === null ? args : ['-c', cores, command, ...args];
    this.#process = spawn(cores === null ? command : 'taskset', pinned, {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on('data', (piece: Buffer) => {
        this.output = (this.output + piece.toString()).slice(-MOST_OUTPUT);
        this.onOutput();
      });
    }
    this.exit = new Promise((resolve) => {
      this.#process.once('error', (error) => {
        resolve(error.message);
      });
      this.#process.once('close', (code, signal) => {
        resolve(signal ? `signal ${signal}` : `code ${code ?? 'unknown'}`);
      });
    });
    void this.exit.then(() => (this.hasEnded = true));
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    this.#process.kill('SIGTERM');
    this.#process.kill('SIGCONT'); // A frozen process receives the signal only when it continues.
    const insist = setTimeout(() => this.#process.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.exit;
    clearTimeout(insist);
  }
}

function printed(child: Child, pattern: RegExp): Promise<string> {
  return new Promise((resolve) => {
    child.onOutput = () => {
      const found = pattern.exec(child.output)?.[1];
      if (found === undefined) return;
      child.onOutput = () => undefined;
      resolve(found);
    };
  });
}

async function answering(child: Child, url: string): Promise<string> {
  while (!child.hasEnded) {
    try {
      await (await fetch(url)).body?.cancel();
      return url;
    } catch {
      await sleep(POLL_EVERY_MS);
    }
  }
  return new Promise(() => undefined); // Callers that wait are notified of the end first.
}
