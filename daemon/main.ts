/** `llmp daemon`: read the settings, compose, listen, stop on a signal. */
import { readEnvironment } from '../config/environment.js';
import { type Environment, type Loaded, loadSettings, SettingsError } from '../config/settings.js';
import { readVersion } from '../config/version.js';
import { type Daemon, realClock, startDaemon } from './compose.js';
import type { Log } from './core/ports.js';
import { createLog } from './log.js';

export interface DaemonOptions {
  /** Settings in a file; the real environment wins over it. */
  envFile?: string;
  /** Only say whether the settings are good. Connects to nothing. */
  check?: boolean;
  /** Only show the settings in force. */
  printConfig?: boolean;
}

// sysexits.h, as operator-facing documentation lists them.
const EXIT = { unavailable: 69, crash: 70, permission: 77, configuration: 78 };

/** @returns the process's exit code, once the daemon has ended. */
export async function runDaemon(options: DaemonOptions): Promise<number> {
  process.umask(0o077); // Whatever is written, the database first of all, is for this user alone.
  let loaded: Loaded;
  try {
    loaded = loadSettings(environment(options.envFile));
  } catch (error) {
    return complain(error);
  }
  if (options.printConfig) process.stdout.write(`${loaded.describe()}\n`);
  if (options.check) process.stderr.write('the configuration is good\n');
  if (options.printConfig || options.check) {
    for (const warning of loaded.warnings) process.stderr.write(`warning: ${warning}\n`);
    return 0;
  }
  return serve(loaded);
}

async function serve({ settings, warnings }: Loaded): Promise<number> {
  const log = createLog({
    level: settings.logLevel,
    format: settings.logFormat,
    secrets: [settings.managementToken, settings.encryptionKey?.toString('base64') ?? ''],
    stream: process.stdout,
  });
  // Nobody reads the log any more: no reason to stop serving.
  process.stdout.on('error', () => undefined);
  // Without a listener this signal opens the inspector, and with it everything in memory.
  process.on('SIGUSR1', () => undefined);
  for (const warning of warnings) log.warn(warning);

  let daemon: Daemon;
  const crashed = nextCrash(log);
  const signalled = nextSignal();
  try {
    daemon = await startDaemon({ settings, log, clock: realClock, version: readVersion() });
  } catch (error) {
    return complain(error);
  }
  log.info('listening', { address: addressOf(daemon), version: readVersion() });

  const code = await Promise.race([signalled, crashed]);
  await daemon.stop();
  log.info('stopped');
  return code;
}

function environment(envFile: string | undefined): Environment {
  const env = readEnvironment(process.env, envFile);
  const isForPerson = process.stdout.isTTY && !('LOG_FORMAT' in env) && !('LOG_FORMAT_FILE' in env);
  return isForPerson ? { ...env, LOG_FORMAT: 'text' } : env;
}

/** Where it listens: with port 0, the one it was given. */
function addressOf({ server }: Daemon): string | null {
  const address = server.address();
  if (address === null || typeof address === 'string') return address;
  return `${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}

// At a terminal one ^C arrives twice: from the terminal, and passed on by npm.
const SAME_KEYPRESS_MS = 200;

/** 0 at the first signal; a second one does not wait. */
function nextSignal(): Promise<number> {
  return new Promise((resolve) => {
    let firstAtMs: number | null = null;
    for (const [signal, forcedExit] of [
      ['SIGTERM', 143],
      ['SIGINT', 130],
    ] as const) {
      process.on(signal, () => {
        const nowMs = performance.now();
        firstAtMs ??= nowMs;
        if (nowMs - firstAtMs > SAME_KEYPRESS_MS) process.exit(forcedExit);
        resolve(0);
      });
    }
  });
}

/** After an error nobody expected nothing in memory can be trusted: finish what is in flight, and end. */
function nextCrash(log: Log): Promise<number> {
  return new Promise((resolve) => {
    const crash = (error: unknown) => {
      log.error('unexpected error, stopping', { error });
      resolve(1);
    };
    process.once('uncaughtException', crash);
    process.once('unhandledRejection', crash);
  });
}

const PERMISSION = new Set(['EACCES', 'EPERM', 'EROFS', 'SQLITE_CANTOPEN', 'SQLITE_READONLY']);

/** Says on stderr why the daemon does not run. */
function complain(error: unknown): number {
  if (error instanceof SettingsError) {
    for (const problem of error.problems) process.stderr.write(`llmp: ${problem}\n`);
    return EXIT.configuration;
  }
  const code = codeOf(error);
  process.stderr.write(`llmp: ${error instanceof Error ? error.message : String(error)}\n`);
  if (code === 'EADDRINUSE' || code === 'EADDRNOTAVAIL') return EXIT.unavailable;
  return PERMISSION.has(code) || /SQLITE_(?:CANTOPEN|READONLY)/.test(String(error)) ? EXIT.permission : EXIT.crash;
}

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
}
