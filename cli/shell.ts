import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { TerminalIo } from '../console/terminal-io.js';
import type { Pager } from './pager.js';

export type InputStream = Readable & { isTTY?: boolean };
export type OutputStream = Writable & { isTTY?: boolean; columns?: number; rows?: number };

/** Signals that request the end of the process. */
export type EndingSignal = 'SIGINT' | 'SIGQUIT' | 'SIGTERM' | 'SIGHUP';

/** The process environment as commands see it. Only main.ts accesses the real process; tests provide their own. */
export interface Shell {
  env: NodeJS.ProcessEnv;
  stdin: InputStream;
  stdout: OutputStream;
  stderr: OutputStream;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms` milliseconds, or as soon as `signal` is aborted. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
  /** The command that started this program, for hints: `llmp`, `npx llmp` or `node PATH`. */
  program: string;
  /** Resolves with the first signal that requests the end of the process. After this call, signals no longer end it by default. */
  interrupted(): Promise<EndingSignal>;
  /** Calls `listener` for each of these signals. After this call, they no longer end the process by default. */
  onSignal(listener: (signal: EndingSignal) => void): void;
  /** Waits for `work`. Meanwhile a signal that requests the end of the process calls `cancel` in place of ending it. */
  interruptible<T>(work: Promise<T>, cancel: (signal: EndingSignal) => void): Promise<T>;
  /** Terminal access for a full-screen interface. */
  terminal(): Promise<TerminalIo>;
  /** Shows a text with a pager. @returns false if the pager could not be started. */
  page(pager: Pager, text: string): Promise<boolean>;
  /** Starts a program that inherits the standard streams, with the umask that llmp was started with. */
  spawn(file: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess;
}
