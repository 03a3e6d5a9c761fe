/** Terminal access for the terminal UI: streams, signals, clock. Tests provide their own. */
import type { EventEmitter } from 'node:events';
import { writeSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';

export interface Clock {
  /** Milliseconds of a monotonic clock. */
  monotonic(): number;
  /** Runs `action` after `ms` milliseconds. @returns a function that cancels it. */
  after(ms: number, action: () => void): () => void;
}

export interface Size {
  columns: number;
  rows: number;
}

export interface TerminalIo {
  env: NodeJS.ProcessEnv;
  stdin: Readable & { isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };
  stdout: Writable & { isTTY?: boolean; columns?: number; rows?: number };
  stderr: Writable;
  /** Emits and sends signals. */
  process: EventEmitter & { pid: number; kill(pid: number, signal: NodeJS.Signals): unknown };
  clock: Clock;
  /** Writes as many bytes as fit. @returns their number. @throws EAGAIN if none fit, EIO or EPIPE if the terminal is closed. */
  write(bytes: Uint8Array): number;
  /** Sets whether `write` blocks the process until the terminal reads. */
  setBlocking(isBlocking: boolean): void;
  /** Ends the process at once. */
  exit(code: number): void;
}

const machineClock: Clock = {
  monotonic: () => performance.now(),
  after(ms, action) {
    // The timer is not unref'ed: while the terminal UI is suspended and does not read the keyboard, only timers keep the process running.
    const timer = setTimeout(action, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** The terminal of a process. It writes frames directly to the file descriptor, because output queued in a Node stream cannot be cancelled. */
export function terminalIo(process: NodeJS.Process): TerminalIo {
  const { env, stdin, stdout, stderr } = process;
  // By default Node writes to terminals in blocking mode, in which a stopped terminal also blocks signal handlers. The internal method
  // that changes the mode may be missing; writes then stay blocking.
  const handle = (stdout as { _handle?: { setBlocking?(isBlocking: boolean): void } })._handle;
  return {
    env,
    stdin,
    stdout,
    stderr,
    process,
    clock: machineClock,
    write: (bytes) => writeSync(stdout.fd, bytes),
    setBlocking: (isBlocking) => handle?.setBlocking?.(isBlocking),
    exit: (code) => process.exit(code),
  };
}
