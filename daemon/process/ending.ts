/** How a process that serves comes to its end, and what it says of it. */
import { isatty } from 'node:tty';
import { SettingsError } from '../../config/settings.js';
import { EXIT } from '../api/vocabulary.js';
import type { Log } from '../core/ports.js';
import { PRIORITY } from './journal.js';
import { maskText } from './log.js';

export { EXIT };

/** What `--check` says. */
export const CHECKED = 'the configuration is good';
/** Follows it on a reload, for which systemd gives no credentials. */
export const WITHOUT_CREDENTIALS = '; the credentials of the unit were not checked';

// At a terminal one ^C arrives twice: from the terminal, and passed on by npm.
const SAME_KEYPRESS_MS = 200;

/** @returns 0 at the first signal, `hangUp` when the terminal is gone. @param exit ends the process: a second signal does not wait. */
export function nextSignal(exit: (code: number) => void): Promise<number> {
  return new Promise((resolve) => {
    let firstAtMs: number | null = null;
    // A terminal that is gone does not come back: what makes a service reload ends a daemon that was started there.
    const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
    process.on('SIGHUP', () => {
      if (terminals.some((descriptor) => !isatty(descriptor))) resolve(EXIT.hangUp);
    });
    for (const [signal, forcedExit] of [
      ['SIGTERM', EXIT.terminated],
      ['SIGINT', EXIT.interrupted],
    ] as const) {
      process.on(signal, () => {
        const nowMs = performance.now();
        firstAtMs ??= nowMs;
        if (nowMs - firstAtMs > SAME_KEYPRESS_MS) exit(forcedExit);
        resolve(0);
      });
    }
  });
}

/** Ends by the signal itself: Node aborts when it is to restore a terminal that is gone. */
export function hangUp(): void {
  process.removeAllListeners('SIGHUP');
  process.kill(process.pid, 'SIGHUP');
}

/**
 * After an error nobody expected nothing in memory can be trusted: finish what is in flight, and end.
 *
 * @param exit ends the process: a second one waits for nothing. Node, left to itself, would print it as it is, secrets included.
 */
export function nextCrash(log: Log, exit: (code: number) => void): Promise<number> {
  return new Promise((resolve) => {
    let isEnding = false;
    const crash = (error: unknown) => {
      log.error(isEnding ? 'another unexpected error, ending at once' : 'unexpected error, stopping', { error });
      if (isEnding) exit(1);
      isEnding = true;
      resolve(1);
    };
    process.on('uncaughtException', crash);
    process.on('unhandledRejection', crash);
  });
}

const PERMISSION = new Set(['EACCES', 'EPERM', 'EROFS', 'SQLITE_CANTOPEN', 'SQLITE_READONLY']);

/** Says on stderr why the process does not run. @param isInJournal whether that is the journal. @returns its exit code. */
export function complain(error: unknown, isInJournal = false): number {
  const say = (text: string) => process.stderr.write(`${isInJournal ? PRIORITY.error : ''}llmp: ${text}\n`);
  if (error instanceof SettingsError) {
    for (const problem of error.problems) say(problem);
    return EXIT.configuration;
  }
  const code = codeOf(error);
  // A driver's words can hold the connection string, and with it a password.
  say(maskText(error instanceof Error ? error.message : String(error)));
  if (code === 'EADDRINUSE' || code === 'EADDRNOTAVAIL') return EXIT.unavailable;
  return PERMISSION.has(code) || /SQLITE_(?:CANTOPEN|READONLY)/.test(String(error)) ? EXIT.permission : EXIT.crash;
}

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
}
