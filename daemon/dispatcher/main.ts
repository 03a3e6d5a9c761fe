/** `llmp dispatcher`: reads the settings, builds the dispatcher, delivers events, and stops on a signal. */
import { secretsOf } from '../../config/settings.js';
import { isReloadWithoutCredentials, readEnvFile, type Sources } from '../../config/sources.js';
import { readVersion } from '../../config/version.js';
import { realClock } from '../process/clock.js';
import {
  CONFIGURATION_VALID,
  reportFailure,
  EXIT,
  hangUp,
  nextCrash,
  nextSignal,
  CREDENTIALS_NOT_CHECKED,
  stopped,
} from '../process/ending.js';
import { isJournalStream, STDERR, STDOUT } from '../process/journal.js';
import { createLog, type AdjustableLog } from '../process/log.js';
import { Supervisor } from '../process/supervisor.js';
import { SystemdNotify, takeSupervision } from '../process/systemd-notify.js';
import { openBackend } from './backends/backend.js';
import { type Dispatcher, type GiveUpReason, openStream, startDispatcher } from './dispatcher.js';
import { type DispatcherSettings, loadDispatcherSettings } from './settings.js';

export interface DispatcherRun {
  /** The path of a file with settings. The environment overrides it. */
  envFile?: string;
  /** Only checks the settings; connects to nothing. */
  check?: boolean;
  /** Delivers the events that are in the stream, then exits. */
  once?: boolean;
  /** Moves the dead letters back to the stream, then exits. */
  replayDead?: boolean;
}

/** Runs until the dispatcher ends. @returns the exit code of the process. */
export async function runDispatcher(run: DispatcherRun): Promise<number> {
  // Unreferenced timers and lost connections do not keep the process alive; this timer does.
  const alive = setInterval(() => undefined, 2 ** 30);
  try {
    const areCredentialsWithheld = run.check === true && isReloadWithoutCredentials(process.env);
    const loaded = loadDispatcherSettings({ ...sources(run.envFile), areCredentialsWithheld });
    const { settings, warnings } = loaded;
    if (run.check) {
      for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
      process.stderr.write(`${CONFIGURATION_VALID}${areCredentialsWithheld ? CREDENTIALS_NOT_CHECKED : ''}\n`);
      return 0;
    }
    const log = createLog({
      level: settings.logLevel,
      format: settings.logFormat,
      secrets: secretsOf(loaded),
      stream: process.stdout,
      isInJournal: isLogInJournal(),
    });
    // A closed log pipe is no reason to stop delivering events.
    process.stdout.on('error', () => undefined);
    for (const warning of warnings) log.warn(warning);
    return run.replayDead ? await replay(settings, log) : await dispatch(settings, log, run.once ?? false);
  } catch (error) {
    return reportFailure(error, isJournalStream(process.env.JOURNAL_STREAM, STDERR));
  } finally {
    clearInterval(alive);
  }
}

function sources(envFile: string | undefined): Sources {
  return {
    env: process.env,
    file: envFile === undefined ? undefined : readEnvFile(envFile),
    isReadByPeople: process.stdout.isTTY || isLogInJournal(),
    execArgv: process.execArgv,
  };
}

const isLogInJournal = () => isJournalStream(process.env.JOURNAL_STREAM, STDOUT);

const GIVE_UP_EXIT: Readonly<Record<GiveUpReason, number>> = {
  'Redis unavailable': EXIT.unavailable,
  'backend unavailable': EXIT.unavailable,
  'credential refused': EXIT.permission,
};

async function dispatch(settings: DispatcherSettings, log: AdjustableLog, isOnce: boolean): Promise<number> {
  const supervision = takeSupervision(process.env, process.pid);
  const supervisor =
    supervision &&
    new Supervisor({ ...supervision, notify: new SystemdNotify(supervision, log).notify, clock: realClock });
  const stopping = () => supervisor?.stopping(settings.shutdownGraceMs);
  const crashed = nextCrash(log, (code) => process.exit(code));
  const signalled = nextSignal((code) => process.exit(code));
  void Promise.race([signalled, crashed]).then(stopping);
  const { dispatcherService, dispatcherEndpoint: endpoint, dispatcherApiKey: apiKey } = settings;
  const version = readVersion();
  const backend = await openBackend(dispatcherService, { endpoint, apiKey, clock: realClock, log, version });
  const dispatcher = await startDispatcher({ settings, backend, clock: realClock, log, isOnce });
  log.info('dispatching', { service: dispatcherService, address: addressOf(dispatcher), version });
  supervisor?.listening(() => Promise.resolve(dispatcher.health()));
  process.on('SIGHUP', () => {
    supervisor?.reloading();
    dispatcher.reopen().then(
      () => {
        log.info('files reopened');
        supervisor?.reloaded(true);
      },
      (error: unknown) => {
        log.error('cannot reopen files', { error });
        supervisor?.reloaded(false);
      },
    );
  });
  const ended = await Promise.race([signalled, crashed, dispatcher.done]);
  stopping();
  await stopped(dispatcher.stop());
  if (typeof ended === 'number') {
    log.info('stopped');
    if (ended === EXIT.hangUp) hangUp();
    return ended;
  }
  if (ended === 'done') {
    log.info('no events left to deliver');
    return 0;
  }
  log.error('giving up; undelivered events stay in the stream', { reason: ended });
  return GIVE_UP_EXIT[ended];
}

async function replay(settings: DispatcherSettings, log: AdjustableLog): Promise<number> {
  const stream = openStream(settings, 'replay', realClock, log);
  try {
    await stream.connection.open();
    const count = await stream.replayDead();
    log.info('dead letters moved back to the stream', { count });
    return 0;
  } catch (error) {
    log.error('cannot move dead letters back to the stream', { error });
    return EXIT.unavailable;
  } finally {
    stream.close();
  }
}

function addressOf({ address }: Dispatcher): string | null {
  if (address === null || typeof address === 'string') return address;
  return `${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}
