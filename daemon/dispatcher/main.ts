/** `llmp dispatcher`: read the settings, compose, forward events, stop on a signal. */
import { secretsOf } from '../../config/settings.js';
import { isReloadWithoutCredentials, readEnvFile, type Sources } from '../../config/sources.js';
import { readVersion } from '../../config/version.js';
import { realClock } from '../process/clock.js';
import { CHECKED, complain, EXIT, hangUp, nextCrash, nextSignal, WITHOUT_CREDENTIALS } from '../process/ending.js';
import { leadsToJournal, STDERR, STDOUT } from '../process/journal.js';
import { createLog, type AdjustableLog } from '../process/log.js';
import { Supervisor } from '../process/supervisor.js';
import { SystemdNotify, takeSupervision } from '../process/systemd-notify.js';
import { openBackend } from './backends/open.js';
import { type Dispatcher, type GaveUp, openStream, startDispatcher } from './dispatcher.js';
import { type DispatcherSettings, loadDispatcherSettings } from './settings.js';

export interface DispatcherRun {
  /** Settings in a file; the real environment wins over it. */
  envFile?: string;
  /** Only say whether the settings are good. Connects to nothing. */
  check?: boolean;
  /** Dispatch what there is, and end. */
  once?: boolean;
  /** Put the dead letters back into the stream, and end. */
  replayDead?: boolean;
}

/** @returns the process's exit code, once the dispatcher has ended. */
export async function runDispatcher(run: DispatcherRun): Promise<number> {
  // Timers and connections that are lost keep no process alive; this does.
  const alive = setInterval(() => undefined, 2 ** 30);
  try {
    const areCredentialsWithheld = run.check === true && isReloadWithoutCredentials(process.env);
    const loaded = loadDispatcherSettings({ ...sources(run.envFile), areCredentialsWithheld });
    const { settings, warnings } = loaded;
    if (run.check) {
      for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
      process.stderr.write(`${CHECKED}${areCredentialsWithheld ? WITHOUT_CREDENTIALS : ''}\n`);
      return 0;
    }
    const log = createLog({
      level: settings.logLevel,
      format: settings.logFormat,
      secrets: secretsOf(loaded),
      stream: process.stdout,
      isInJournal: isLogInJournal(),
    });
    // Nobody reads the log any more: no reason to stop dispatching.
    process.stdout.on('error', () => undefined);
    for (const warning of warnings) log.warn(warning);
    return run.replayDead ? await replay(settings, log) : await dispatch(settings, log, run.once ?? false);
  } catch (error) {
    return complain(error, leadsToJournal(process.env.JOURNAL_STREAM, STDERR));
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

const isLogInJournal = () => leadsToJournal(process.env.JOURNAL_STREAM, STDOUT);

const GAVE_UP_EXIT: Readonly<Record<GaveUp, number>> = {
  'redis away': EXIT.unavailable,
  'back end failing': EXIT.unavailable,
  'credential refused': EXIT.permission,
};

async function dispatch(settings: DispatcherSettings, log: AdjustableLog, isOnce: boolean): Promise<number> {
  const supervision = takeSupervision(process.env, process.pid);
  const supervisor =
    supervision && new Supervisor({ ...supervision, tell: new SystemdNotify(supervision, log).tell, clock: realClock });
  const stopping = () => supervisor?.stopping(settings.shutdownGraceMs);
  const crashed = nextCrash(log, (code) => process.exit(code));
  const signalled = nextSignal((code) => process.exit(code));
  void Promise.race([signalled, crashed]).then(stopping);
  const { dispatcherService, dispatcherEndpoint: endpoint, dispatcherApiKey: apiKey } = settings;
  const version = readVersion();
  const backend = await openBackend(dispatcherService, { endpoint, apiKey, clock: realClock, log, version });
  const dispatcher = await startDispatcher({ settings, backend, clock: realClock, log, isOnce });
  log.info('dispatching', { service: dispatcherService, address: addressOf(dispatcher), version });
  supervisor?.listening(() => Promise.resolve(dispatcher.sight()));
  process.on('SIGHUP', () => {
    supervisor?.reloading();
    dispatcher.reopen().then(
      () => {
        log.info('files opened anew');
        supervisor?.reloaded(true);
      },
      (error: unknown) => {
        log.error('files could not be opened anew', { error });
        supervisor?.reloaded(false);
      },
    );
  });
  const ended = await Promise.race([signalled, crashed, dispatcher.done]);
  stopping();
  await dispatcher.stop();
  if (typeof ended === 'number') {
    log.info('stopped');
    if (ended === EXIT.hangUp) hangUp();
    return ended;
  }
  if (ended === 'done') {
    log.info('all there was is dispatched');
    return 0;
  }
  log.error('gave up; what is not delivered stays in the stream', { reason: ended });
  return GAVE_UP_EXIT[ended];
}

async function replay(settings: DispatcherSettings, log: AdjustableLog): Promise<number> {
  const stream = openStream(settings, 'replay', realClock, log);
  try {
    await stream.connection.open();
    const count = await stream.replayDead();
    log.info('dead letters are back in the stream', { count });
    return 0;
  } catch (error) {
    log.error('dead letters could not be put back', { error });
    return EXIT.unavailable;
  } finally {
    stream.close();
  }
}

function addressOf({ address }: Dispatcher): string | null {
  if (address === null || typeof address === 'string') return address;
  return `${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}
