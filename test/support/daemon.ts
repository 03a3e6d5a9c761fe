/** A whole daemon in this process, with a temporary SQLite file and a free port. */
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Environment, loadSettings } from '../../config/settings.js';
import type { WireProject, WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { type ComposeOptions, type Daemon, startDaemon as compose } from '../../daemon/compose.js';
import type { RequestEnded } from '../../daemon/core/events.js';
import type { Log } from '../../daemon/core/ports.js';
import { readRoleMapping } from '../../daemon/oidc/role-mapping.js';
import { readPriceFile } from '../../daemon/process/price-lists.js';
import { DATABASE_TIMEOUTS, type DatabaseTimeouts } from '../../daemon/store/sql/database.js';
import { createLog } from '../../daemon/process/log.js';
import { openDatabase } from '../../daemon/store/databases.js';
import { Migrator } from '../../migrations/migrator.js';
import { canary, canaryEncryptionKey } from './canaries.js';
import { TestClock } from './clock.js';
import { expectDescribed } from './description.js';
import { perSuite, perTest } from './per-test.js';
import { inspectEvents } from './inspected-events.js';
import { startWithWorkers } from './in-process-workers.js';
import { TEST_WORKERS } from './test-workers.js';
import { inspect, inspectAnswers, inspectFiles, watchFolder } from './leaks.js';

export const MANAGEMENT_TOKEN = canary('management');
export const UPSTREAM_KEY = canary('upstream');

export interface TestResponse {
  status: number;
  headers: Headers;
  // The test knows what a response contains.
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
  /** A management request, with the right token unless `headers` say otherwise. Fails if the response does not match its description. */
  manage(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<TestResponse>;
  createProject(fields?: Partial<{ name: string; api_key: string }>): Promise<WireProject>;
  createToken(projectId: string, fields?: Record<string, unknown>): Promise<WireTokenCreated>;
  token(id: string): Promise<WireToken>;
  /** A request on /v1 with a secret. */
  call(secret: string, path?: string, init?: RequestInit): Promise<Response>;
  /** Stops the daemon; another one can continue with its database. */
  stop(): Promise<void>;
}

export interface TestDaemonOptions {
  upstream?: string;
  /** Settings in addition to those of every test. */
  env?: Environment;
  /** Continues with the database of a previous daemon. */
  dir?: string;
  /** For example one that stands still. */
  clock?: TestClock;
  /** The timeouts of a database server, in place of the default ones. */
  databaseTimeouts?: Readonly<DatabaseTimeouts>;
  /** How long a command to Redis may take while a request waits for it, in place of the default 50 ms. */
  redisCommandMs?: number | undefined;
  /** Lets the daemon make its key file. By default the test gives it a key that a leak scan recognises. */
  makesKeyFile?: boolean;
  /** Lets the daemon make the tables too. AUTO_MIGRATE does the same, whatever its value. */
  makesTables?: boolean;
}

let projects = 0;

/** Tests that set these limits, which are divided among workers, are about one process. */
const DIVIDED = ['MAX_CONNECTIONS', 'UPSTREAM_CONNECTIONS', 'HTTP_CACHE_MAX_BYTES'];

export async function startDaemon({
  upstream,
  env,
  dir: given,
  clock = new TestClock(),
  databaseTimeouts = DATABASE_TIMEOUTS,
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
    chmodSync(databasePath, 0o600); // With the mode of a daemon's own file, whatever the umask of the tests is.
  }
  const { logged, log } = recordingLog();
  const ended: RequestEnded[] = [];
  const loaded = loadSettings({
    MANAGEMENT_TOKEN,
    LISTEN_ADDR: '127.0.0.1:0',
    UPSTREAM_BASE_URL: upstream ?? 'http://127.0.0.1:9',
    DATABASE_URL: databasePath,
    AUDIT_LOG_FILE: join(dir, 'audit.log'),
    SHUTDOWN_DELAY: '0',
    SHUTDOWN_GRACE: '0',
    ...(TEST_WORKERS !== undefined && !(env && DIVIDED.some((name) => name in env)) && { WORKERS: TEST_WORKERS }),
    ...env,
  });
  const { settings, reloadable } = loaded;
  const begin = settings.workers > 1 ? (options: ComposeOptions) => startWithWorkers(loaded, options) : compose;
  const daemon = await begin({
    settings,
    reloadable,
    priceFile: readPriceFile(reloadable.pricesFile),
    roleMapping: readRoleMapping(reloadable.oidcRoles, settings.oidcIssuer),
    log,
    clock,
    databaseTimeouts,
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
    const answer: TestResponse = {
      status: response.status,
      headers: response.headers,
      body: text === '' ? null : (JSON.parse(text) as unknown),
    };
    expectDescribed(method, path, answer);
    return answer;
  };
  /** A database server that has just started on a busy machine may not respond in time. */
  const untilAvailable = async (change: () => Promise<TestResponse>): Promise<TestResponse> => {
    for (let attempt = 1; ; attempt++) {
      const answer = await change();
      if (answer.status !== 503 || attempt === 5) return answer;
      await sleep(500);
    }
  };
  const expectStatus = async (answer: Promise<TestResponse>, status: number) => {
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
      daemon.scheduler.publishAll();
      return ended;
    },
    manage,
    createProject: (fields = {}) =>
      expectStatus(
        untilAvailable(() =>
          manage('POST', '/manage/projects', { name: `project ${++projects}`, api_key: UPSTREAM_KEY, ...fields }),
        ),
        201,
      ) as Promise<WireProject>,
    createToken: (projectId, fields = {}) =>
      expectStatus(
        untilAvailable(() => manage('POST', '/manage/tokens', { project_id: projectId, ...fields })),
        201,
      ) as Promise<WireTokenCreated>,
    token: (id) => expectStatus(manage('GET', `/manage/tokens/${id}`), 200) as Promise<WireToken>,
    call: (secret, path = '/v1/models', init = {}) =>
      fetch(url + path, { ...init, headers: { authorization: `Bearer ${secret}`, ...(init.headers as object) } }),
    async stop() {
      // Some of them, such as the write-ahead log, disappear with the daemon. The database stays until the test file ends.
      inspectFiles(dir, databasePath);
      // The delays are 0, but on a clock that stands still even those never pass.
      const time = setInterval(() => {
        clock.advance(1);
      }, 1);
      await daemon.stop();
      clearInterval(time);
    },
  };
}

/** A daemon for all tests of a suite. @param options are asked for when it starts. */
export const daemonForSuite = (options: () => TestDaemonOptions = () => ({})): TestDaemon =>
  perSuite(() => startDaemon(options()));

/** A new daemon for each test of a suite. */
export const daemonForEachTest = (options: () => TestDaemonOptions = () => ({})): TestDaemon =>
  perTest(() => startDaemon(options()));

let migrated: Promise<string> | undefined;

/** The path of a database with all tables and no rows, to be copied. Making the tables takes longer than the rest of a start. */
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

/** A folder that is removed when the process ends. The quick tests have theirs in memory (ring.cjs). */
export function temporaryFolder(): string {
  const dir = mkdtempSync(join(process.env.LLMP_TEST_FOLDER ?? tmpdir(), 'llmp-test-'));
  watchFolder(dir);
  if (folders.push(dir) === 1) {
    process.once('exit', () => {
      // A program that was told to end may still write.
      for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    });
  }
  return dir;
}

/** The real log at level debug, written to an array. */
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
