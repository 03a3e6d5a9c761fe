/** Everything on one machine and nothing to configure: a stand-in provider, and a daemon on a temporary database. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadSettings } from '../../config/settings.js';
import { readVersion } from '../../config/version.js';
import { realClock } from '../process/clock.js';
import { type Daemon, startDaemon } from '../compose.js';
import type { RequestEnded } from '../core/events.js';
import { startStandIn } from './provider.js';

export interface DemoOptions {
  /** Where the daemon listens on 127.0.0.1; 0: on a free port. */
  port: number;
  /** The upstream key that the stand-in expects of the daemon. */
  upstreamKey: string;
  onEnded: (ended: RequestEnded) => void;
  onProblem: (message: string) => void;
}

export interface Demo {
  url: string;
  managementToken: string;
  /** Holds the management token, mode 0600, so that it need not stand on a command line. */
  managementTokenFile: string;
  /** Ends everything and removes the folder. */
  stop(): Promise<void>;
}

export async function startDemo({ port, upstreamKey, onEnded, onProblem }: DemoOptions): Promise<Demo> {
  const folder = temporaryFolder();
  const managementToken = randomBytes(24).toString('base64url');
  const managementTokenFile = join(folder, 'management-token');
  writeFileSync(managementTokenFile, `${managementToken}\n`, { mode: 0o600 });

  const provider = await startStandIn(upstreamKey);
  let daemon: Daemon;
  try {
    // Settings of its own only: what is in the environment may belong to a real daemon.
    const { settings, reloadable } = loadSettings({
      MANAGEMENT_TOKEN: managementToken,
      STATE_DIRECTORY: folder,
      LOGS_DIRECTORY: folder,
      LISTEN_ADDR: `127.0.0.1:${port}`,
      UPSTREAM_BASE_URL: provider.url,
      SHUTDOWN_DELAY: '0',
      SHUTDOWN_GRACE: '0',
    });
    const quiet = () => undefined;
    const log = { debug: quiet, info: quiet, warn: quiet, error: onProblem };
    daemon = await startDaemon({ settings, reloadable, log, clock: realClock, version: readVersion(), onEnded });
  } catch (error) {
    await provider.stop();
    throw error;
  }
  return {
    url: `http://127.0.0.1:${(daemon.server.address() as AddressInfo).port}`,
    managementToken,
    managementTokenFile,
    async stop() {
      await daemon.stop();
      await provider.stop();
      remove(folder);
    },
  };
}

/** Of mode 0700, and removed whatever ends the process, unless that is `kill -9`. */
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
