/** Runs the real command line in this process, with streams and an environment from the test. */
import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../../cli/program.js';
import type { Shell } from '../../cli/shell.js';
import { MANAGEMENT_TOKEN, type TestDaemon } from '../support/daemon.js';
import { commandOf, inspect } from '../support/leaks.js';
import type { StandIn } from './stand-in.js';

export interface Captured {
  exitCode: number;
  out: string;
  err: string;
}

export interface Situation {
  env?: NodeJS.ProcessEnv;
  /** The content of standard input. */
  stdin?: string;
  /** Makes all three streams a terminal with this many columns. */
  terminal?: number;
  /** The height of that terminal. */
  rows?: number;
  /** Receives what a pager would show. @returns whether the pager could be started. */
  page?: Shell['page'];
  /** Typed at the first prompt, on a terminal. */
  answer?: string;
  /** Receives every piece of stderr when it is written. */
  onErr?: (text: string) => void;
  /** Receives every piece of stdout when it is written. */
  onOut?: (text: string) => void;
  /** Resolves when ^C is pressed; by default at once. */
  interrupted?: Promise<unknown>;
  /** A function if it moves while the command runs. */
  nowMs?: number | (() => number);
  /** The name that the program was called by (default: `llmp`). */
  program?: string;
  /** Replaces waiting. */
  pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** @param args the command line without `llmp`; a text is split at spaces. */
export async function llmp(args: string | readonly string[], situation: Situation = {}): Promise<Captured> {
  const { env = {}, terminal, answer, nowMs } = situation;
  let isAnswered = answer === undefined;
  const isTTY = terminal !== undefined;
  const stdin = Object.assign(new PassThrough(), { isTTY, setRawMode: () => stdin });
  if (!isTTY) stdin.end(situation.stdin ?? '');

  const { rows } = situation;
  const stdout = Object.assign(new Recorder(terminal, situation.onOut), rows === undefined ? {} : { rows });
  const stderr = new Recorder(terminal, (text) => {
    situation.onErr?.(text);
    if (isAnswered || !/[?:]/.test(text)) return;
    isAnswered = true;
    setImmediate(() => stdin.write(answer));
  });
  const children: Promise<unknown>[] = [];
  const shell: Shell = {
    env,
    stdin,
    stdout,
    stderr,
    now: () => (typeof nowMs === 'function' ? nowMs() : (nowMs ?? Date.now())),
    pause: situation.pause ?? ((ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined)),
    program: situation.program ?? 'llmp',
    interrupted: () => (situation.interrupted ?? Promise.resolve()).then(() => 'SIGINT'),
    onSignal: () => undefined,
    interruptible(work, cancel) {
      void situation.interrupted?.then(() => {
        cancel('SIGINT');
      });
      return work;
    },
    // Enough to report that there is no terminal, and for a single frame. Other uses need a real one.
    terminal: () =>
      Promise.resolve({
        env,
        stdin,
        stdout,
        stderr,
        process: Object.assign(new EventEmitter(), { pid: 0, kill: () => true }),
        clock: { monotonic: () => performance.now(), after: () => () => undefined },
        write: (bytes: Uint8Array) => (stdout.write(bytes), bytes.length),
        setBlocking: () => undefined,
        exit: () => undefined,
      }),
    page: situation.page ?? (() => Promise.resolve(false)),
    spawn(file, args, childEnv) {
      const child = spawn(file, args, { env: childEnv, stdio: ['ignore', 'pipe', 'pipe'] });
      child.stdout.setEncoding('utf8').on('data', (text: string) => stdout.write(text));
      child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.write(text));
      // It may have ended before all of its output has arrived.
      children.push(
        new Promise((resolve) => {
          child.once('close', resolve).once('error', resolve);
        }),
      );
      return child;
    },
  };
  const argv = typeof args === 'string' ? args.split(' ') : args;
  const exitCode = await run(argv, shell);
  await Promise.all(children);
  inspect(`stdout of ${commandOf(argv)}`, stdout.text);
  inspect(`stderr of ${commandOf(argv)}`, stderr.text);
  return { exitCode, out: stdout.text, err: stderr.text };
}

/** Commands with a daemon and its management token in their environment, to which `env` of a situation is added. */
export function commandsAt(daemon: TestDaemon | StandIn) {
  const here = (args: string | readonly string[], { env, ...situation }: Situation = {}): Promise<Captured> =>
    llmp(typeof args === 'string' ? args.trim() : args, {
      env: { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, ...env },
      ...('clock' in daemon && { nowMs: daemon.clock.now() }),
      ...situation,
    });
  const withFormat = (args: string | readonly string[], format: string) =>
    typeof args === 'string' ? `${args.trim()} -o ${format}` : [...args, '-o', format];
  return {
    here,
    /** What a command prints as JSON. */
    json: async <T>(args: string | readonly string[], situation?: Situation) =>
      JSON.parse((await here(withFormat(args, 'json'), situation)).out) as T,
    /** The IDs that a command prints. */
    ids: async (args: string | readonly string[], situation?: Situation) =>
      (await here(withFormat(args, 'id'), situation)).out.match(/.+/g) ?? [],
  };
}

class Recorder extends Writable {
  readonly onText: ((text: string) => void) | undefined;
  text = '';
  readonly isTTY: boolean;
  readonly columns: number;

  constructor(columns: number | undefined, onText?: (text: string) => void) {
    super({ decodeStrings: false });
    this.onText = onText;
    this.isTTY = columns !== undefined;
    this.columns = columns ?? 0;
  }

  /** Like the streams of the process, it is not ended when a piped stream ends. */
  override end(): this {
    return this;
  }

  override _write(piece: string | Buffer, _encoding: string, done: () => void): void {
    this.text += String(piece);
    this.onText?.(String(piece));
    done();
  }
}
