/** `llmp daemon`: read the settings, compose, listen, stop on a signal. */
import { setFlagsFromString } from 'node:v8';
import { reloaded } from '../config/reload.js';
import { asLines, describeSettings, type Loaded, loadSettings, secretsOf, SettingsError } from '../config/settings.js';
import { isReloadWithoutCredentials, readEnvFile, type Sources } from '../config/sources.js';
import { readVersion } from '../config/version.js';
import { realClock } from './process/clock.js';
import { type Daemon, startDaemon } from './compose.js';
import { CHECKED, complain, EXIT, hangUp, nextCrash, nextSignal, WITHOUT_CREDENTIALS } from './process/ending.js';
import { addressOf } from './process/listen.js';
import { leadsToJournal, STDERR, STDOUT } from './process/journal.js';
import { type AdjustableLog, createLog } from './process/log.js';
import { sightOf } from './compose/status.js';
import { Supervisor } from './process/supervisor.js';
import { SystemdNotify, takeSupervision } from './process/systemd-notify.js';

export interface DaemonOptions {
  /** Settings in a file; the real environment wins over it. */
  envFile?: string;
  /** Only say whether the settings are good. Connects to nothing. */
  check?: boolean;
  /** Only show the settings in force. */
  printConfig?: boolean;
}

/** @returns the process's exit code, once the daemon has ended. */
export async function runDaemon(options: DaemonOptions): Promise<number> {
  // React, where the Admin UI is looked at, would otherwise take it for a developer's machine, where it checks everything and is slow.
  process.env.NODE_ENV ??= 'production';
  try {
    const { envFile, check = false, printConfig = false } = options;
    if (check || printConfig) return inspect(sources(envFile), { check, printConfig });
    return await serve(() => load(envFile));
  } catch (error) {
    return complain(error, leadsToJournal(process.env.JOURNAL_STREAM, STDERR));
  }
}

/** Where the settings come from now: files may say something else next time. @throws {SettingsError} */
function sources(envFile: string | undefined): Sources {
  return {
    env: process.env,
    file: envFile === undefined ? undefined : readEnvFile(envFile),
    isReadByPeople: process.stdout.isTTY || isLogInJournal(),
    execArgv: process.execArgv,
  };
}

const isLogInJournal = () => leadsToJournal(process.env.JOURNAL_STREAM, STDOUT);

function load(envFile: string | undefined): Loaded {
  const { env, ...more } = sources(envFile);
  return loadSettings(env, more);
}

function inspect({ env, ...more }: Sources, { check, printConfig }: DaemonOptions): number {
  const areCredentialsWithheld = isReloadWithoutCredentials(env);
  const { settings, problems, warnings } = describeSettings(env, { ...more, areCredentialsWithheld });
  if (printConfig) process.stdout.write(`${asLines(settings)}\n`);
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  if (problems.length > 0) return complain(new SettingsError(problems));
  if (check) process.stderr.write(`${CHECKED}${areCredentialsWithheld ? WITHOUT_CREDENTIALS : ''}\n`);
  return 0;
}

/**
 * V8 would put what a line of code allocates into the old generation at once if most of it survived for a while. A few slow requests
 * are enough for that; from then on such objects, dead as they are, carry the whole of each request along with them until the
 * next full collection, and these are then two fifths of the time. What a server allocates for a request is best kept young.
 */
function keepRequestsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/** @param read reads the settings, again on each SIGHUP. @throws what keeps it from starting. */
async function serve(read: () => Loaded): Promise<number> {
  keepRequestsYoung();
  const supervision = takeSupervision(process.env, process.pid);
  const loaded = read();
  const { settings, reloadable, warnings } = loaded;
  const log = createLog({
    level: reloadable.logLevel,
    format: settings.logFormat,
    secrets: secretsOf(loaded),
    stream: process.stdout,
    isInJournal: isLogInJournal(),
  });
  // Nobody reads the log any more: no reason to stop serving.
  process.stdout.on('error', () => undefined);
  for (const warning of warnings) log.warn(warning);

  const supervisor =
    supervision && new Supervisor({ ...supervision, tell: new SystemdNotify(supervision, log).tell, clock: realClock });
  const stopping = () => supervisor?.stopping(settings.shutdownDelayMs + settings.shutdownGraceMs);
  const crashed = nextCrash(log, (code) => process.exit(code));
  const signalled = nextSignal((code) => process.exit(code));
  void Promise.race([signalled, crashed]).then(stopping);
  const starting = startDaemon({ settings, reloadable, log, clock: realClock, version: readVersion() });
  reloadOnHangUp({ starting, supervisor, log, loaded, read });
  const daemon = await starting;
  process.once('exit', () => {
    endAtOnce(daemon);
  });
  const { server, managementServer } = daemon;
  log.info('listening', {
    address: addressOf(server),
    ...(managementServer && { management: addressOf(managementServer) }),
    version: readVersion(),
  });
  supervisor?.listening(async () => sightOf(await daemon.status()));

  let code: number;
  try {
    code = await Promise.race([signalled, crashed, daemon.failed]);
  } finally {
    stopping();
    await daemon.stop();
  }
  log.info('stopped');
  if (code === EXIT.hangUp) hangUp();
  return code;
}

/** The last moment of the process, however it came to it. */
function endAtOnce({ afterwards, auditFiles }: Daemon): void {
  afterwards.settle();
  auditFiles.writeAtOnce();
  // Node waits for its threads, and one of them for a disk that does not answer.
  if (auditFiles.isHung) process.kill(process.pid, 'SIGKILL');
}

interface Reloading {
  starting: Promise<Daemon>;
  /** Null where there is none. */
  supervisor: Supervisor | null;
  log: AdjustableLog;
  loaded: Loaded;
  read: () => Loaded;
}

/** On SIGHUP opens the audit files anew and reads the settings again, and puts the reloadable ones in force; if anything is wrong with them, nothing. */
function reloadOnHangUp({ starting, supervisor, log, loaded, read }: Reloading): void {
  let inForce = loaded;
  const reload = (daemon: Daemon) => {
    supervisor?.reloading();
    daemon.auditFiles.reopen();
    let fresh: Loaded;
    try {
      fresh = read();
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      log.error('settings not reloaded', { problems: error.problems });
      supervisor?.reloaded(false);
      return;
    }
    const { changed, waiting, ...next } = reloaded(inForce, fresh);
    inForce = next.loaded;
    daemon.apply(inForce.reloadable);
    for (const warning of inForce.warnings) log.warn(warning);
    if (waiting.length > 0) log.warn(`${waiting.join(', ')} changed and will have effect after a restart`);
    log.info('settings reloaded', { changed });
    log.level = inForce.reloadable.logLevel; // Last: a quieter log is to say that it becomes one.
    supervisor?.reloaded(true);
  };
  process.on('SIGHUP', () => {
    // A daemon that does not start says so itself.
    void starting.then(reload, () => undefined);
  });
}
