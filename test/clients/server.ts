/** Starts a daemon in a separate process, for third-party programs. */
import { join } from 'node:path';
import { canary } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { launchDaemon } from '../support/process.js';

export interface Server {
  url: string;
  /** URL and management token of the daemon, as environment variables for a program. */
  env: { LLMP_URL: string; LLMP_TOKEN: string };
  /** Log lines with the level `error`. */
  errors(): string[];
  stop(): Promise<void>;
}

/** @param upstream URL of the provider; by default nothing listens there. */
export async function startServer(upstream = 'http://127.0.0.1:9'): Promise<Server> {
  const managementToken = canary('management');
  const daemon = launchDaemon({
    MANAGEMENT_TOKEN: managementToken,
    DATABASE_URL: join(temporaryFolder(), 'llmp.db'),
    UPSTREAM_BASE_URL: upstream,
    // Generated requests name any host; none beyond this machine is to be asked.
    UPSTREAM_ALLOWED_HOSTS: '127.0.0.1',
    HTTP_CACHE_ENABLED: 'true',
    LOG_FORMAT: 'json',
  });
  const url = await daemon.listening;
  return {
    url,
    env: { LLMP_URL: url, LLMP_TOKEN: managementToken },
    errors: () => daemon.logged.filter((line) => line.includes('"level":"error"')),
    stop: () => daemon.kill(),
  };
}
