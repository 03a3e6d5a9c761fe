/** What the terminal's own code may touch of the world. Tests hand in their own. */
import type { EventEmitter } from 'node:events';
import { writeSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';

export interface Clock {
  /** Milliseconds that never go back. */
  monotonic(): number;
  /** @returns takes it back. */
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
  /** Signals come from here, and are sent by it. */
  process: EventEmitter & { pid: number; kill(pid: number, signal: NodeJS.Signals): unknown };
  clock: Clock;
  /** Writes as much as fits. @returns bytes. @throws EAGAIN where nothing fits, and EIO or EPIPE once nobody is there. */
  write(bytes: Uint8Array): number;
  /** Whether `write` waits for the terminal to read, and with it everything else in the process. */
  setBlocking(isBlocking: boolean): void;
  /** Ends the process at once. */
  exit(code: number): void;
}

const machineClock: Clock = {
  monotonic: () => performance.now(),
  after(ms, action) {
    // Each keeps the process: with the keyboard given back, nothing else would until we are continued.
    const timer = setTimeout(action, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** A process whose output is a terminal. Frames go past Node's stream, whose queue could not be taken back. */
export function terminalIo(process: NodeJS.Process): TerminalIo {
  const { env, stdin, stdout, stderr } = process;
  // Node makes terminals wait. A stopped one would then stop signals, too; without the method it does.
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
