/** The measured daemon: the built command in a separate process, on a new SQLite file, with all records turned on. */
import { dirname, join } from 'node:path';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import type { PolicyChanges } from '../../daemon/api/vocabulary.js';
import { temporaryFolder } from '../support/daemon.js';
import type { Target } from './load.js';
import { manage, MANAGEMENT_TOKEN } from './management.js';
import type { Service } from './processes.js';
import type { Bench } from './run.js';

const COMMAND = join(import.meta.dirname, '../../cli/main.js');

/** Only the counts of requests are recorded. */
export const NO_RECORDS = {
  ENABLE_METRICS: 'false',
  LLM_PROXY_EVENT_BUS: 'off',
  AUDIT_LOG_FILE: '',
  AUDIT_USE_LOG_FILE: '',
};

export interface Daemon extends Service {
  /** Issues a token. @param maxRequests 0: unlimited. @param policies default: none. @returns the daemon as a target with this token. */
  targetWithToken(maxRequests: number, policies?: PolicyChanges): Promise<Target>;
}

/** The database was migrated by an earlier start, as nearly always. @param settings in addition to those that every daemon has. */
export async function startDaemon(
  bench: Bench,
  upstreamUrl: string,
  settings: Record<string, string> = {},
): Promise<Daemon> {
  const databasePath = join(temporaryFolder(), 'llmp.db');
  await (await spawnDaemon(bench, upstreamUrl, databasePath)).stop();
  const service = await spawnDaemon(bench, upstreamUrl, databasePath, settings);
  const { url } = service;
  const project = await manage<WireProject>(url, 'POST', '/manage/projects', {
    name: 'bench',
    api_key: 'sk-upstream-of-the-bench',
  });
  return {
    ...service,
    async targetWithToken(maxRequests, policies = {}) {
      const fields = { project_id: project.id, max_requests: maxRequests, ...policies };
      const { token } = await manage<WireTokenCreated>(url, 'POST', '/manage/tokens', fields);
      return { url, headers: { authorization: `Bearer ${token}` } };
    },
  };
}

/** Starts without a project. @param databasePath is created if it does not exist. */
export async function spawnDaemon(
  { processes, cores, node }: Bench,
  upstreamUrl: string,
  databasePath: string,
  settings: Record<string, string> = {},
): Promise<Service> {
  const service = await processes.start(
    {
      name: 'llmp',
      command: node,
      args: ['--', COMMAND, 'daemon'],
      env: {
        MANAGEMENT_TOKEN,
        LISTEN_ADDR: '127.0.0.1:0',
        DATABASE_URL: databasePath,
        UPSTREAM_BASE_URL: upstreamUrl,
        ENABLE_METRICS: 'true',
        AUDIT_LOG_FILE: join(dirname(databasePath), 'audit.log'),
        SHUTDOWN_DELAY: '0',
        SHUTDOWN_GRACE: '1s',
        ...settings,
      },
      cores: cores.measured,
    },
    { prints: /"address":"([^"]+)".*"message":"listening"/ },
  );
  return { ...service, url: `http://${service.url}` };
}
