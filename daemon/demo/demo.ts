/** `llmp demo`: a daemon with a temporary database, and a stand-in provider on this machine. It needs no configuration. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadSettings } from '../../config/settings.js';
import { readVersion } from '../../config/version.js';
import { ManagementClient } from '../api/client.js';
import { type Daemon, startDaemon } from '../compose.js';
import type { RequestEnded } from '../core/events.js';
import { realClock } from '../process/clock.js';
import { type LiveTraffic, startLiveTraffic } from './live-traffic.js';
import { Past, PAST_MS } from './past.js';
import { PastClock } from './past-clock.js';
import { startStandIn } from './provider.js';

export interface DemoOptions {
  /** The port of the daemon on 127.0.0.1; 0 for a free port. */
  port: number;
  /** The upstream key that the stand-in provider expects. */
  upstreamKey: string;
  /** Whether it begins with projects, tokens, traffic and clients. */
  hasPast: boolean;
  /** How long the daemon may take for a response to its management API while it starts. */
  timeoutMs: number;
  /** Called for each request that is not one of the simulated clients. */
  onEnded: (ended: RequestEnded) => void;
  onProblem: (message: string) => void;
}

export interface Demo {
  url: string;
  managementToken: string;
  /** A file of mode 0600 with the management token, so that it does not have to appear on a command line. */
  managementTokenFile: string;
  /** Ends everything and removes the folder. */
  stop(): Promise<void>;
}

export async function startDemo(options: DemoOptions): Promise<Demo> {
  const { port, upstreamKey, hasPast, timeoutMs, onEnded, onProblem } = options;
  const folder = temporaryFolder();
  const managementToken = randomBytes(24).toString('base64url');
  const managementTokenFile = join(folder, 'management-token');
  writeFileSync(managementTokenFile, `${managementToken}\n`, { mode: 0o600 });

  const nowMs = realClock.now();
  const clock = new PastClock(hasPast ? nowMs - PAST_MS : nowMs);
  const provider = await startStandIn(upstreamKey);
  let daemon: Daemon | null = null;
  let past: Past | null = null;
  let clients: LiveTraffic | null = null;
  const stop = async () => {
    await clients?.stop();
    await daemon?.stop();
    await provider.stop();
    remove(folder);
  };
  try {
    // Only these settings: the environment may contain those of a real daemon.
    const { settings, reloadable } = loadSettings({
      MANAGEMENT_TOKEN: managementToken,
      STATE_DIRECTORY: folder,
      LOGS_DIRECTORY: folder,
      LISTEN_ADDR: `127.0.0.1:${port}`,
      UPSTREAM_BASE_URL: provider.url,
      HTTP_CACHE_ENABLED: 'true',
      SHUTDOWN_DELAY: '0',
      SHUTDOWN_GRACE: '0',
    });
    const quiet = () => undefined;
    const log = { debug: quiet, info: quiet, warn: quiet, error: onProblem };
    const onEndedOfOthers = (ended: RequestEnded) => {
      if (past?.hasProject(ended.projectId) !== true) onEnded(ended);
    };
    const version = readVersion();
    daemon = await startDaemon({ settings, reloadable, log, clock, version, onEnded: onEndedOfOthers });
    const url = `http://127.0.0.1:${(daemon.server.address() as AddressInfo).port}`;
    if (hasPast) {
      const clientOf = (user: string, reason?: string) =>
        new ManagementClient({ server: url, managementToken, frontEnd: 'cli', user, reason, timeoutMs, fetch });
      const created = (past = new Past({ daemon, clock, nowMs, clientOf, upstreamKey }));
      await created.create();
      clients = startLiveTraffic(url, (name) => created.secretOf(name));
    }
    return { url, managementToken, managementTokenFile, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Creates a folder of mode 0700, which is removed on exit, unless the process is ended by `kill -9`. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'llmp-demo-'));
  process.once('exit', () => {
    remove(folder);
  });
  return folder;
}

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}
