import type { Readable, Writable } from 'node:stream';

export type InputStream = Readable & { isTTY?: boolean };
export type OutputStream = Writable & { isTTY?: boolean; columns?: number };

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
  /** Resolves at ^C, or when the process is to end for another reason; from the call on that no longer ends it by itself. */
  interrupted(): Promise<void>;
}
