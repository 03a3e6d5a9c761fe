/** Runs the command line as a separate process, for behaviour that only a process has. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));

/** The program that users run. It starts in a third of the time, which matters where time is limited. */
export const BUNDLE = fileURLToPath(new URL('../../cli/llmp.cjs', import.meta.url));

export type Process = ChildProcessByStdio<Writable, Readable, Readable>;

export interface Ended {
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
}

/** Starts `llmp` with exactly this environment. */
export function start(args: readonly string[], env: NodeJS.ProcessEnv = {}, program = MAIN): Process {
  return spawn(process.execPath, ['--', program, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** @param stdin the content of standard input. */
export async function ended(child: Process, stdin = ''): Promise<Ended> {
  child.stdin.on('error', () => undefined); // It may end before it has read all of it.
  child.stdin.end(stdin);
  const [out, err, [exitCode, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  return { exitCode, signal, out, err };
}
