/** `llmp daemon`: reads the settings, starts the daemon, reloads on SIGHUP, and stops on a signal. */
import { setFlagsFromString } from 'node:v8';
import { reloaded } from '../config/reload.js';
import {
  asLines,
  describeSettings,
  type Loaded,
  loadSettings,
  secretsOf,
  SettingsError,
  textsOf,
} from '../config/settings.js';
import { isReloadWithoutCredentials, readEnvFile, type Sources } from '../config/sources.js';
import { readVersion } from '../config/version.js';
import { readRoleMapping, type RoleMapping } from './oidc/role-mapping.js';
import { type PriceFile, readPriceFile } from './process/price-lists.js';
import { realClock } from './process/clock.js';
import { type Daemon, startDaemon } from './compose.js';
import {
  CONFIGURATION_VALID,
  reportFailure,
  EXIT,
  hangUp,
  nextCrash,
  nextSignal,
  CREDENTIALS_NOT_CHECKED,
  stopped,
} from './process/ending.js';
import { addressOf } from './process/listen.js';
import { isJournalStream, STDERR, STDOUT } from './process/journal.js';
import { type AdjustableLog, createLog } from './process/log.js';
import { healthSummaryOf } from './compose/status.js';
import { Supervisor } from './process/supervisor.js';
import { SystemdNotify, takeSupervision } from './process/systemd-notify.js';
import { growYoungGeneration, V8_FLAGS } from './process/v8.js';

export interface DaemonOptions {
  /** The path of a file with settings. The environment overrides it. */
  envFile?: string;
  /** Only checks the settings; connects to nothing. */
  check?: boolean;
  /** Only prints the settings in force. */
  printConfig?: boolean;
}

/** Runs until the daemon ends. @returns the exit code of the process. */
export async function runDaemon(options: DaemonOptions): Promise<number> {
  // For the Admin UI: without this React runs in its slow development mode.
  process.env.NODE_ENV ??= 'production';
  // Workers inherit it: fewer heaps of glibc than threads that V8 compiles in. In each it keeps some megabytes.
  process.env.MALLOC_ARENA_MAX ??= '2';
  try {
    const { envFile, check = false, printConfig = false } = options;
    if (check || printConfig) return checkSettings(sources(envFile), { check, printConfig });
    return await serve(() => load(envFile));
  } catch (error) {
    return reportFailure(error, isJournalStream(process.env.JOURNAL_STREAM, STDERR));
  }
}

/** Reads the sources of the settings, whose files may change between reloads. @throws {SettingsError} */
function sources(envFile: string | undefined): Sources {
  return {
    env: process.env,
    file: envFile === undefined ? undefined : readEnvFile(envFile),
    isReadByPeople: process.stdout.isTTY || isLogInJournal(),
    execArgv: process.execArgv,
  };
}

const isLogInJournal = () => isJournalStream(process.env.JOURNAL_STREAM, STDOUT);

function load(envFile: string | undefined): LoadedAll {
  const { env, ...more } = sources(envFile);
  const loaded = loadSettings(env, more);
  const { settings, reloadable } = loaded;
  return {
    ...loaded,
    priceFile: readPriceFile(reloadable.pricesFile),
    roleMapping: readRoleMapping(reloadable.oidcRoles, settings.oidcIssuer),
  };
}

/** The settings, and the files that some of them name. */
interface LoadedAll extends Loaded {
  priceFile: PriceFile | null;
  roleMapping: RoleMapping | null;
}

function checkSettings({ env, ...more }: Sources, { check, printConfig }: DaemonOptions): number {
  const areCredentialsWithheld = isReloadWithoutCredentials(env);
  const { settings, problems, warnings } = describeSettings(env, { ...more, areCredentialsWithheld });
  const valueOf = (wanted: string) => settings.find(({ name }) => name === wanted)?.value;
  if (printConfig) process.stdout.write(`${asLines(settings)}\n`);
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  if (problems.length > 0) return reportFailure(new SettingsError(problems));
  readPriceFile(valueOf('PRICES_FILE') || null);
  readRoleMapping(valueOf('OIDC_ROLES') || null, valueOf('OIDC_ISSUER') ?? undefined);
  if (check) process.stderr.write(`${CONFIGURATION_VALID}${areCredentialsWithheld ? CREDENTIALS_NOT_CHECKED : ''}\n`);
  return 0;
}

/** @param read reads the settings, at start and on each SIGHUP. @throws the reason if the daemon cannot start. */
async function serve(read: () => LoadedAll): Promise<number> {
  for (const flag of V8_FLAGS) setFlagsFromString(flag);
  const supervision = takeSupervision(process.env, process.pid);
  const loaded = read();
  const { settings, reloadable, priceFile, roleMapping, warnings } = loaded;
  const log = createLog({
    level: reloadable.logLevel,
    format: settings.logFormat,
    secrets: secretsOf(loaded),
    stream: process.stdout,
    isInJournal: isLogInJournal(),
  });
  // A closed log pipe is no reason to stop serving.
  process.stdout.on('error', () => undefined);
  for (const warning of warnings) log.warn(warning);

  const supervisor =
    supervision &&
    new Supervisor({ ...supervision, notify: new SystemdNotify(supervision, log).notify, clock: realClock });
  const stopping = () => supervisor?.stopping(settings.shutdownDelayMs + settings.shutdownGraceMs);
  const crashed = nextCrash(log, (code) => process.exit(code));
  const signalled = nextSignal((code) => process.exit(code));
  void Promise.race([signalled, crashed]).then(stopping);
  const inForce = { loaded };
  const workers = {
    texts: () => textsOf(inForce.loaded),
    isLogInJournal: isLogInJournal(),
    execArgv: process.execArgv,
  };
  const starting = startDaemon({
    settings,
    reloadable,
    priceFile,
    roleMapping,
    log,
    clock: realClock,
    version: readVersion(),
    workers,
  });
  reloadOnHangUp({ starting, supervisor, log, inForce, read });
  const daemon = await starting;
  process.once('exit', () => {
    flushOnExit(daemon);
  });
  const { address, managementServer } = daemon;
  log.info('listening', {
    address,
    ...(managementServer && { management: addressOf(managementServer) }),
    version: readVersion(),
  });
  growYoungGeneration(realClock);
  supervisor?.listening(async () => healthSummaryOf(await daemon.status()));

  let code: number;
  try {
    code = await Promise.race([signalled, crashed, daemon.failed]);
  } finally {
    stopping();
    await stopped(daemon.stop());
  }
  log.info('stopped');
  if (code === EXIT.hangUp) hangUp();
  return code;
}

/** Writes buffered records when the process exits, for whatever reason. */
function flushOnExit({ scheduler, auditFiles }: Daemon): void {
  scheduler.publishAll();
  auditFiles.flushSync();
  // On exit Node waits for its threads, and one of them waits for a disk that does not respond.
  if (auditFiles.isHung) process.kill(process.pid, 'SIGKILL');
}

interface Reloading {
  starting: Promise<Daemon>;
  /** Null if systemd does not supervise the process. */
  supervisor: Supervisor | null;
  log: AdjustableLog;
  /** The settings in force, which a reload replaces. */
  inForce: { loaded: Loaded };
  read: () => LoadedAll;
}

/** On SIGHUP continues the audit file of changes at its path, reads the settings again, and applies the reloadable ones. If any setting is invalid, applies none. */
function reloadOnHangUp({ starting, supervisor, log, inForce, read }: Reloading): void {
  const reload = (daemon: Daemon) => {
    supervisor?.reloading();
    daemon.auditFiles.wake();
    let fresh: LoadedAll;
    try {
      fresh = read();
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      log.error('settings not reloaded', { problems: error.problems });
      supervisor?.reloaded(false);
      return;
    }
    const { changed, waiting, ...next } = reloaded(inForce.loaded, fresh);
    inForce.loaded = next.loaded;
    const { priceFile, roleMapping } = fresh;
    daemon.apply(next.loaded.reloadable, { prices: priceFile, roles: roleMapping });
    for (const warning of next.loaded.warnings) log.warn(warning);
    if (waiting.length > 0) log.warn(`${waiting.join(', ')} changed; restart the daemon to apply`);
    if (priceFile) log.info('prices read', { entries: priceFile.prices.length, sha256: priceFile.sha256 });
    if (roleMapping) log.info('roles read', { rows: roleMapping.rows.length, sha256: roleMapping.sha256 });
    log.info('settings reloaded', { changed });
    log.level = next.loaded.reloadable.logLevel; // Last, so that the lines above are logged at the previous level.
    supervisor?.reloaded(true);
  };
  process.on('SIGHUP', () => {
    // If the daemon does not start, `serve` reports it.
    void starting.then(reload, () => undefined);
  });
}
