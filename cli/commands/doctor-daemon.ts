/** The checks of `llmp doctor` on a running daemon: whether it is ready, and has the same version as this program. */
import type { ListenAddress } from '../../config/kinds.js';
import { loadPart, type Settings, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { readVersion } from '../../config/version.js';
import { ApiError, ManagementClient, Unreachable } from '../../daemon/api/client.js';
import type { CheckGroup, Finding } from '../../daemon/ops/doctor.js';
import type { Invocation } from '../command.js';
import { connect, connectionTo } from '../connection/connection.js';
import { failureOf } from '../../console/failure.js';
import { Input } from '../input.js';
import { healthOf } from '../connection/probes.js';

const PROBE_TIMEOUT_MS = 3_000;

/** The parts of an invocation that the checks need. */
export type DoctorInputs = Pick<Invocation, 'shell' | 'globals' | 'output' | 'destination'>;

/** The sources of the daemon's settings: its environment and its env file. */
interface SettingsSource {
  env: NodeJS.ProcessEnv;
  envFile: string | undefined;
}

/** Checks the daemon given on the command line or in the environment, otherwise the daemon with these settings. */
export function daemonChecks(asking: DoctorInputs, source: SettingsSource): CheckGroup {
  return { check: 'daemon', run: (signal) => daemon(asking, source, signal) };
}

async function* daemon(asking: DoctorInputs, source: SettingsSource, signal: AbortSignal): AsyncGenerator<Finding> {
  const { envFile } = source;
  const check = 'daemon';
  const { globals, shell, output } = asking;
  const { LLMP_SERVER, LLMP_CONTEXT } = shell.env;
  const isNamed = Boolean(globals.server ?? globals.context ?? (LLMP_SERVER || LLMP_CONTEXT));
  const own = isNamed ? null : ownDaemon(source);
  const ownDestination = own && { server: own.server, context: null };
  const connecting = {
    ...asking,
    globals: { ...globals, timeout: globals.timeout ?? PROBE_TIMEOUT_MS },
    destination: ownDestination ? () => ownDestination : asking.destination,
  };
  const connection = connectionTo(connecting);
  const { shown } = connection.server;
  const start = `llmp daemon${envFile === undefined ? '' : ` --env-file ${envFile}`}`;
  try {
    const { status, missing, degraded } = await healthOf(connection, signal);
    if (status !== 'ready') {
      yield { check, state: 'failed', evidence: `${shown} is not ready: ${missing.join(', ')}`, advice: 'llmp status' };
    } else if (degraded.length > 0) {
      const evidence = `${shown} is ready, but degraded: ${degraded.join(', ')}`;
      yield { check, state: 'warning', evidence, advice: 'llmp status' };
    } else yield { check, state: 'ok', evidence: `${shown} is ready`, advice: null };
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    const evidence = `${shown}: ${error.message}`;
    yield { check, state: isNamed ? 'failed' : 'skipped', evidence, advice: start };
    return;
  }
  const ask = async () => {
    // The management token in these settings is sent only to the daemon that they are for.
    const client = own?.managementToken
      ? new ManagementClient({
          ...connection,
          server: connection.server.url,
          managementToken: own.managementToken,
          frontEnd: 'cli',
        })
      : await connect({ ...connecting, input: new Input(shell, false), output });
    return client.status(signal);
  };
  yield await versionFinding(ask, shown, Boolean(own?.managementToken));
}

/** @param isOwnToken whether `ask` sends the management token of the checked settings. */
async function versionFinding(
  ask: () => Promise<{ version: string }>,
  server: string,
  isOwnToken: boolean,
): Promise<Finding> {
  const check = 'daemon version';
  const own = readVersion();
  try {
    const { version } = await ask();
    if (version === own) return { check, state: 'ok', evidence: `${version}, the same as this program`, advice: null };
    const evidence = `the daemon has version ${version}, this program ${own}`;
    return {
      check,
      state: 'warning',
      evidence,
      advice: 'Restart the daemon, or use the llmp that it was started with',
    };
  } catch (error) {
    const { message, explanation } = failureOf(error, server);
    if (explanation.code === 'management_token_missing') {
      return { check, state: 'skipped', evidence: 'needs a management token', advice: null };
    }
    const isOther = isOwnToken && error instanceof ApiError && error.status === 401;
    const advice = isOther
      ? 'Another daemon may use this address: set another LISTEN_ADDR, or use its management token'
      : (explanation.advice ?? 'llmp status');
    return { check, state: 'failed', evidence: message, advice };
  }
}

interface OwnDaemon {
  server: string;
  managementToken: string | null;
}

/** @returns null if the settings are incomplete, so that its address is unknown. */
function ownDaemon({ env, envFile }: SettingsSource): OwnDaemon | null {
  try {
    const file = envFile === undefined ? undefined : readEnvFile(envFile);
    const { settings } = loadPart({ env, file }, ['listenAddress', 'managementListenAddress']);
    const server = urlOf(settings.managementListenAddress ?? settings.listenAddress);
    return { server, managementToken: managementTokenOf({ env, file }) };
  } catch (error) {
    if (error instanceof SettingsError) return null;
    throw error;
  }
}

function managementTokenOf(sources: Parameters<typeof loadPart>[0]): Settings['managementToken'] | null {
  try {
    return loadPart(sources, ['managementToken']).settings.managementToken;
  } catch (error) {
    if (error instanceof SettingsError) return null;
    throw error;
  }
}

/** The URL of a daemon on this machine. A daemon that listens on all addresses is reached on the loopback address. */
export function urlOf(address: ListenAddress): string {
  if ('path' in address) return `unix:${address.path}`;
  const host = address.host === '::' ? '::1' : address.host === '0.0.0.0' ? '127.0.0.1' : address.host;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}
