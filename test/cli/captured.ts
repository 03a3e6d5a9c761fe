/** The real command line, run in this process with streams and an environment of the test's own. */
import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../../cli/program.js';
import type { Shell } from '../../cli/shell.js';
import { commandOf, inspect } from '../support/leaks.js';

export interface Captured {
  exitCode: number;
  out: string;
  err: string;
}

export interface Situation {
  env?: NodeJS.ProcessEnv;
  /** What is piped in. */
  stdin?: string;
  /** All three streams are a terminal of this many columns. */
  terminal?: number;
  /** Typed at the first prompt, on a terminal. */
  answer?: string;
  /** Hears every piece of stderr as it is written. */
  onErr?: (text: string) => void;
  /** Hears every piece of stdout as it is written. */
  onOut?: (text: string) => void;
  /** When ^C is pressed; at once unless given. */
  interrupted?: Promise<unknown>;
  nowMs?: number;
  /** What was typed to call it; `llmp` unless given. */
  program?: string;
  /** Instead of waiting for so long. */
  pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** @param args the command line without `llmp`; a text is split at its spaces. */
export async function llmp(args: string | readonly string[], situation: Situation = {}): Promise<Captured> {
  const { env = {}, terminal, answer, nowMs } = situation;
  let isAnswered = answer === undefined;
  const isTTY = terminal !== undefined;
  const stdin = Object.assign(new PassThrough(), { isTTY, setRawMode: () => stdin });
  if (!isTTY) stdin.end(situation.stdin ?? '');

  const stdout = new Recorder(terminal, situation.onOut);
  const stderr = new Recorder(terminal, (text) => {
    situation.onErr?.(text);
    if (isAnswered || !/[?:]/.test(text)) return;
    isAnswered = true;
    setImmediate(() => stdin.write(answer));
  });
  const shell: Shell = {
    env,
    stdin,
    stdout,
    stderr,
    now: () => nowMs ?? Date.now(),
    pause: situation.pause ?? ((ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined)),
    program: situation.program ?? 'llmp',
    interrupted: () => (situation.interrupted ?? Promise.resolve()).then(() => 'SIGINT'),
    onSignal: () => undefined,
    // Enough to say that there is none, and for a single frame; the rest wants a real one.
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
    spawn: (file, args, childEnv) => spawn(file, args, { env: childEnv, stdio: 'ignore' }),
  };
  const argv = typeof args === 'string' ? args.split(' ') : args;
  const exitCode = await run(argv, shell);
  inspect(`stdout of ${commandOf(argv)}`, stdout.text);
  inspect(`stderr of ${commandOf(argv)}`, stderr.text);
  return { exitCode, out: stdout.text, err: stderr.text };
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

  /** Like the process's own streams it is not ended by what was piped into it. */
  override end(): this {
    return this;
  }

  override _write(piece: string | Buffer, _encoding: string, done: () => void): void {
    this.text += String(piece);
    this.onText?.(String(piece));
    done();
  }
}
