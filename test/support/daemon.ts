/** A whole daemon in this process, on a temporary SQLite file and a free port. */
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { type Environment, loadSettings } from '../../config/settings.js';
import type { WireProject, WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { type Daemon, startDaemon as compose } from '../../daemon/compose.js';
import type { RequestEnded } from '../../daemon/core/events.js';
import type { Log } from '../../daemon/core/ports.js';
import { DATABASE_WAITS, type DatabaseWaits } from '../../daemon/store/sql/waits.js';
import { createLog } from '../../daemon/process/log.js';
import { openDatabase } from '../../daemon/store/open.js';
import { Migrator } from '../../migrations/migrator.js';
import { canary, canaryEncryptionKey } from './canaries.js';
import { TestClock } from './clock.js';
import { expectDescribed } from './description.js';
import { inspectEvents } from './inspected-events.js';
import { inspect, inspectAnswers, inspectFiles, watchFolder } from './leaks.js';

export const MANAGEMENT_TOKEN = canary('management');
export const UPSTREAM_KEY = canary('upstream');

export interface TestAnswer {
  status: number;
  headers: Headers;
  // What an answer holds is for the test to say.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

export interface TestDaemon {
  url: string;
  /** Where /manage is served: `url`, unless `MANAGEMENT_LISTEN_ADDR` says otherwise. */
  managementUrl: string;
  daemon: Daemon;
  clock: TestClock;
  /** The folder of the database. */
  dir: string;
  databasePath: string;
  /** Every log line so far. */
  logged: string[];
  readonly ended: RequestEnded[];
  /** A management call, with the right token unless `headers` say otherwise. Fails when the answer is not as described. */
  manage(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<TestAnswer>;
  createProject(fields?: Partial<{ name: string; api_key: string }>): Promise<WireProject>;
  createToken(projectId: string, fields?: Record<string, unknown>): Promise<WireTokenCreated>;
  token(id: string): Promise<WireToken>;
  /** A request on /v1 with a secret. */
  call(secret: string, path?: string, init?: RequestInit): Promise<Response>;
  /** Stops the daemon; the database stays for another one. */
  stop(): Promise<void>;
}

export interface TestDaemonOptions {
  upstream?: string;
  /** Settings beside those every test has. */
  env?: Environment;
  /** Goes on with the database of a daemon before. */
  dir?: string;
  /** One that stands still, say. */
  clock?: TestClock;
  /** How long a database server is waited for, in place of what is shipped. */
  waits?: Readonly<DatabaseWaits>;
  /** How long a command to Redis may take while a request waits for it, in place of the 50 ms that are shipped. */
  redisCommandMs?: number | undefined;
  /** Leaves it to the daemon to make its key file, rather than to be given one that would be recognised in a leak. */
  makesKeyFile?: boolean;
  /** Leaves it to the daemon to make the tables too. AUTO_MIGRATE does so as well, whatever its value. */
  makesTables?: boolean;
}

let projects = 0;

export async function startDaemon({
  upstream,
  env,
  dir: given,
  clock = new TestClock(),
  waits = DATABASE_WAITS,
  redisCommandMs,
  makesKeyFile = false,
  makesTables = false,
}: TestDaemonOptions = {}): Promise<TestDaemon> {
  const dir = given ?? temporaryFolder();
  const databasePath = join(dir, 'llmp.db');
  const isNew = !existsSync(databasePath) && !existsSync(`${databasePath}.key`);
  if (isNew && !makesKeyFile && env?.ENCRYPTION_KEY === undefined) {
    writeFileSync(`${databasePath}.key`, `${canaryEncryptionKey()}\n`, { mode: 0o600 });
  }
  if (isNew && !makesTables && !makesKeyFile && env?.AUTO_MIGRATE === undefined && env?.DATABASE_URL === undefined) {
    copyFileSync(await migratedDatabase(), databasePath);
    chmodSync(databasePath, 0o600); // As a daemon makes its own, whatever the umask of the tests is.
  }
  const { logged, log } = recordingLog();
  const ended: RequestEnded[] = [];
  const { settings, reloadable } = loadSettings({
    MANAGEMENT_TOKEN,
    LISTEN_ADDR: '127.0.0.1:0',
    UPSTREAM_BASE_URL: upstream ?? 'http://127.0.0.1:9',
    DATABASE_URL: databasePath,
    AUDIT_LOG_FILE: join(dir, 'audit.log'),
    SHUTDOWN_DELAY: '0',
    SHUTDOWN_GRACE: '0',
    ...env,
  });
  const daemon = await compose({
    settings,
    reloadable,
    log,
    clock,
    waits,
    ...(redisCommandMs !== undefined && { redisCommandMs }),
    version: '0.1.0',
    onEnded: (request) => {
      ended.push(request);
      inspect('record of a request', JSON.stringify(request));
    },
  });
  if (daemon.shared.bus) inspectEvents(daemon.shared.bus);
  for (const server of [daemon.server, daemon.managementServer]) if (server) inspectAnswers(server);
  const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = urlOf(daemon.server);
  const managementUrl = daemon.managementServer ? urlOf(daemon.managementServer) : url;

  const manage: TestDaemon['manage'] = async (method, path, body, headers = {}) => {
    const response = await fetch(managementUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${MANAGEMENT_TOKEN}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const answer: TestAnswer = {
      status: response.status,
      headers: response.headers,
      body: text === '' ? null : (JSON.parse(text) as unknown),
    };
    expectDescribed(method, path, answer);
    return answer;
  };
  const expectStatus = async (answer: Promise<TestAnswer>, status: number) => {
    const got = await answer;
    if (got.status !== status) throw new Error(`expected ${status}, got ${got.status}: ${JSON.stringify(got.body)}`);
    return got.body as unknown;
  };

  return {
    url,
    managementUrl,
    daemon,
    clock,
    dir,
    databasePath,
    logged,
    get ended() {
      daemon.afterwards.settle();
      return ended;
    },
    manage,
    createProject: (fields = {}) =>
      expectStatus(
        manage('POST', '/manage/projects', { name: `project ${++projects}`, api_key: UPSTREAM_KEY, ...fields }),
        201,
      ) as Promise<WireProject>,
    createToken: (projectId, fields = {}) =>
      expectStatus(
        manage('POST', '/manage/tokens', { project_id: projectId, ...fields }),
        201,
      ) as Promise<WireTokenCreated>,
    token: (id) => expectStatus(manage('GET', `/manage/tokens/${id}`), 200) as Promise<WireToken>,
    call: (secret, path = '/v1/models', init = {}) =>
      fetch(url + path, { ...init, headers: { authorization: `Bearer ${secret}`, ...(init.headers as object) } }),
    async stop() {
      inspectFiles(dir); // Some of them, such as the write-ahead log, go with the daemon.
      // The delays are 0, but on a clock that stands still even those do not pass.
      const time = setInterval(() => {
        clock.advance(1);
      }, 1);
      await daemon.stop();
      clearInterval(time);
    },
  };
}

let migrated: Promise<string> | undefined;

/** The path of a database with all tables and nothing in them: to be copied. To make the tables takes longer than all the rest of a start. */
function migratedDatabase(): Promise<string> {
  return (migrated ??= (async () => {
    const path = join(temporaryFolder(), 'llmp.db');
    const database = openDatabase({ database: { driver: 'sqlite', path } }, new TestClock());
    await new Migrator(database, '0.1.0').up();
    await database.close();
    return path;
  })());
}

const folders: string[] = [];

/** A folder that is removed when the process ends. */
export function temporaryFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'llmp-test-'));
  watchFolder(dir);
  if (folders.push(dir) === 1) {
    process.once('exit', () => {
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    });
  }
  return dir;
}

/** The shipped log, writing into an array at its most talkative. */
export function recordingLog(): { logged: string[]; log: Log } {
  const logged: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      logged.push(line);
      inspect('log', line);
      done();
    },
  });
  return { logged, log: createLog({ level: 'debug', format: 'json', secrets: [MANAGEMENT_TOKEN], stream }) };
}
