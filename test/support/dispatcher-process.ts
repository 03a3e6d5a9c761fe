/** A dispatcher in a separate process, which a test can kill. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';

const COMMAND = join(import.meta.dirname, '../../cli/main.js');

export interface DispatcherProcess {
  child: ChildProcess;
  /** Everything it printed so far; its log is on its standard output. */
  printed: { stdout: string; stderr: string };
  /** Its exit code; null if a signal ended it. */
  exit: Promise<number | null>;
  /** Kills it as `kill -9` does, and waits until it has ended. */
  kill(): Promise<void>;
}

/** Starts `llmp dispatcher` with only these settings. */
export function launchDispatcher(env: Record<string, string>, ...options: string[]): DispatcherProcess {
  const child = spawn(process.execPath, ['--', COMMAND, 'dispatcher', ...options], {
    env: { PATH: process.env.PATH, DISPATCHER_LISTEN_ADDR: '127.0.0.1:0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const printed = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed.stderr += text));
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  return {
    child,
    printed,
    exit,
    async kill() {
      child.kill('SIGKILL');
      await exit;
    },
  };
}
