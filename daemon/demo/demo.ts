/** `llmp demo`: a daemon with a temporary database, and a stand-in provider on this machine. It needs no configuration. */
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
  /** The port of the daemon on 127.0.0.1; 0 for a free port. */
  port: number;
  /** The upstream key that the stand-in provider expects. */
  upstreamKey: string;
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

export async function startDemo({ port, upstreamKey, onEnded, onProblem }: DemoOptions): Promise<Demo> {
  const folder = temporaryFolder();
  const managementToken = randomBytes(24).toString('base64url');
  const managementTokenFile = join(folder, 'management-token');
  writeFileSync(managementTokenFile, `${managementToken}\n`, { mode: 0o600 });

  const provider = await startStandIn(upstreamKey);
  let daemon: Daemon;
  try {
    // Only these settings: the environment may contain those of a real daemon.
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
