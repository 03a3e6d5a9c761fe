/** How a server process ends: signals, crashes, exit codes, and the message on stderr. */
import { isatty } from 'node:tty';
import { SettingsError } from '../../config/settings.js';
import { EXIT } from '../api/vocabulary.js';
import { type Log, StoreRefused } from '../core/ports.js';
import { PRIORITY } from './journal.js';
import { maskText } from './log.js';

export { EXIT };

/** The message of `--check`. */
export const CONFIGURATION_VALID = 'the configuration is valid';
/** Appended on a reload, for which systemd does not pass credentials. */
export const CREDENTIALS_NOT_CHECKED = '; credentials of the unit were not checked';

// One Ctrl-C on a terminal arrives twice: from the terminal, and forwarded by npm.
const SAME_KEYPRESS_MS = 200;

/** @returns 0 after the first signal, `hangUp` if the terminal was closed. @param exit ends the process at once, on a second signal. */
export function nextSignal(exit: (code: number) => void): Promise<number> {
  return new Promise((resolve) => {
    let firstAtMs: number | null = null;
    // SIGHUP reloads a service. But a daemon that was started on a terminal ends when that terminal is closed.
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

/**
 * Waits until a server has stopped. Meanwhile the process stays alive: neither paused connections nor the clock's timers keep it alive, and
 * it would end before everything is recorded.
 */
export async function stopped(stopping: Promise<unknown>): Promise<void> {
  const alive = setInterval(() => undefined, 60_000);
  try {
    await stopping;
  } finally {
    clearInterval(alive);
  }
}

/** Ends the process by the signal itself: with a normal exit Node would abort while restoring the closed terminal. */
export function hangUp(): void {
  process.removeAllListeners('SIGHUP');
  process.kill(process.pid, 'SIGHUP');
}

/**
 * Handles uncaught errors. After one, the state in memory cannot be trusted: the process finishes requests in flight, and ends. The error is logged
 * with secrets masked, which Node itself would print.
 *
 * @param exit ends the process at once, on a second uncaught error.
 */
export function nextCrash(log: Log, exit: (code: number) => void): Promise<number> {
  return new Promise((resolve) => {
    let isEnding = false;
    const crash = (error: unknown) => {
      log.error(isEnding ? 'another unexpected error, exiting at once' : 'unexpected error, shutting down', { error });
      if (isEnding) exit(1);
      isEnding = true;
      resolve(1);
    };
    process.on('uncaughtException', crash);
    process.on('unhandledRejection', crash);
  });
}

const PERMISSION = new Set(['EACCES', 'EPERM', 'EROFS', 'SQLITE_CANTOPEN', 'SQLITE_READONLY']);

const NO_MANAGEMENT_TOKEN = 'MANAGEMENT_TOKEN is required';
const HOW_TO_SET_IT = 'set MANAGEMENT_TOKEN or MANAGEMENT_TOKEN_FILE; llmp init creates a token and the other settings';
const FIND_LISTENER = '. Find the process that uses it with ss -ltnp, or set another LISTEN_ADDR';

/** Writes to stderr why the process ends. @param isInJournal whether stderr is the journal of systemd. @returns the exit code. */
export function reportFailure(error: unknown, isInJournal = false): number {
  const write = (text: string) => process.stderr.write(`${isInJournal ? PRIORITY.error : ''}llmp: ${text}\n`);
  if (error instanceof SettingsError) {
    for (const problem of error.problems) write(problem);
    if (error.problems.includes(NO_MANAGEMENT_TOKEN)) write(HOW_TO_SET_IT);
    return EXIT.configuration;
  }
  const code = codeOf(error);
  // The message of a database driver may contain the connection string, and with it a password.
  const advice = code === 'EADDRINUSE' && (error as { syscall?: unknown }).syscall === 'listen' ? FIND_LISTENER : '';
  write(maskText(error instanceof Error ? error.message : String(error)) + advice);
  if (code === 'EADDRINUSE' || code === 'EADDRNOTAVAIL' || error instanceof StoreRefused) return EXIT.unavailable;
  return PERMISSION.has(code) || /SQLITE_(?:CANTOPEN|READONLY)/.test(String(error)) ? EXIT.permission : EXIT.crash;
}

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
}
