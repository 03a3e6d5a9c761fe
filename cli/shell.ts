import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { TerminalIo } from '../console/terminal-io.js';

export type InputStream = Readable & { isTTY?: boolean };
export type OutputStream = Writable & { isTTY?: boolean; columns?: number; rows?: number };

/** What asks a process to end. */
export type EndingSignal = 'SIGINT' | 'SIGQUIT' | 'SIGTERM' | 'SIGHUP';

/** What a command may touch of the world around it. Only main.ts knows the real process; tests hand in their own. */
export interface Shell {
  env: NodeJS.ProcessEnv;
  stdin: InputStream;
  stdout: OutputStream;
  stderr: OutputStream;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after so long, or at once when `signal` is aborted. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
  /** What to type, in a shell, to run this program again. */
  program: string;
  /** Resolves at ^C, or when the process is to end for another reason, with the signal; from the call on that no longer ends it by itself. */
  interrupted(): Promise<EndingSignal>;
  /** Calls `hear` at each of these signals; from the call on none of them ends the process by itself. */
  onSignal(hear: (signal: EndingSignal) => void): void;
  /** All that a full screen takes. */
  terminal(): Promise<TerminalIo>;
  /** Starts a program on our own three streams, and with the umask that we were started with. */
  spawn(file: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess;
}
