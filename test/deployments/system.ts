/** A running deployment: processes of the built program, the servers that they use, and all of its interfaces. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { realClock } from '../../daemon/process/clock.js';
import { openDatabase } from '../../daemon/store/databases.js';
import type { Bind, Database } from '../../daemon/store/sql/database.js';
import { TestBrowser } from '../admin/test-browser.js';
import { type Ended, ended, start } from '../cli/processes.js';
import { canaryEncryptionKey } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { DatabaseServer, type ServerKind } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { Fleet, type Member } from '../support/fleet.js';
import { Nginx } from '../support/nginx.js';
import { json, type Provider } from '../support/provider.js';
import { TestRedis } from '../support/redis.js';

export interface Deployment {
  name: string;
  /** null: SQLite with a single instance. Otherwise there are two instances, also connected by Redis. */
  server: ServerKind | null;
  isBehindNginx: boolean;
  /** WORKERS of each instance. */
  workers: number;
  /** The test data is made by one instance on SQLite, and copied with `llmp migrate copy`. */
  isCopied: boolean;
}

/** A response of the management API. */
export interface ManageResponse {
  status: number;
  headers: Headers;
  // The test knows what a response contains.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

export interface RequestOptions {
  headers?: Record<string, string>;
  body?: unknown;
  /** The index of the instance; by default the next in turn, as if a load balancer spread the requests. */
  at?: number;
}

/** The usage that the provider reports for every completion. */
export const PROMPT_TOKENS = 7;
export const COMPLETION_TOKENS = 11;

export class System {
  readonly deployment: Deployment;
  readonly #fleet: Fleet;
  readonly #folders: readonly string[];
  readonly #env: Record<string, string>;
  readonly #database: Database;
  readonly #redis: TestRedis | null;
  readonly #server: DatabaseServer | null;
  readonly #nginx: Nginx | null;
  #turn = 0;

  private constructor(
    deployment: Deployment,
    fleet: Fleet,
    folders: readonly string[],
    env: Record<string, string>,
    database: Database,
    redis: TestRedis | null,
    server: DatabaseServer | null,
    nginx: Nginx | null,
  ) {
    this.deployment = deployment;
    this.#fleet = fleet;
    this.#folders = folders;
    this.#env = env;
    this.#database = database;
    this.#redis = redis;
    this.#server = server;
    this.#nginx = nginx;
  }

  static start(deployment: Deployment): Promise<System> {
    return System.#start(deployment, null);
  }

  /** Ends, and goes on as another deployment with a copy of the database. The first instance keeps its audit files. */
  growTo(deployment: Deployment): Promise<System> {
    return System.#start(deployment, this);
  }

  static async #start(deployment: Deployment, before: System | null): Promise<System> {
    const { server: kind, isBehindNginx, workers } = deployment;
    const server = kind && (await DatabaseServer.start(kind));
    const redis = kind && (await TestRedis.start());
    const count = kind ? 2 : 1;
    const dir = temporaryFolder();
    const [kept] = before ? before.#folders : [];
    const folders = [kept ?? temporaryFolder(), ...Array.from({ length: count - 1 }, () => temporaryFolder())];
    const sockets = [join(dir, '1.sock'), join(dir, '2.sock')] as const;
    const env: Record<string, string> = {
      ENCRYPTION_KEY: (before && before.#env.ENCRYPTION_KEY) ?? canaryEncryptionKey(),
      DATABASE_URL: server ? await server.newDatabase() : join(dir, 'llmp.db'),
      ...(kind && { DB_DRIVER: kind }),
      ...(redis && { REDIS_ADDR: redis.address }),
      HTTP_CACHE_ENABLED: 'true',
      COUNT_READS: 'false',
      ENABLE_METRICS: 'true',
      WORKERS: String(workers),
      ...(isBehindNginx && { TRUSTED_PROXIES: '127.0.0.1', MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' }),
    };
    if (before) {
      await before.stop();
      const copied = await ended(start(['migrate', 'copy', '--to', env.DATABASE_URL ?? ''], before.#env));
      if (copied.exitCode !== 0) throw new Error(`migrate copy: ${copied.exitCode} ${copied.err}`);
    }
    const fleet = await Fleet.start(server, {
      count,
      env,
      envOf: (index) => ({
        AUDIT_LOG_FILE: join(folders[index] ?? '', 'audit.log'),
        ...(isBehindNginx && { LISTEN_ADDR: `unix:${sockets[index]}` }),
      }),
    });
    fleet.provider.answer = answerAsProvider;
    const nginx = isBehindNginx ? await Nginx.start(sockets) : null;
    const url = env.DATABASE_URL ?? '';
    const database = openDatabase(
      { database: kind ? { driver: kind, url } : { driver: 'sqlite', path: url } },
      realClock,
    );
    return new System(deployment, fleet, folders, env, database, redis, server, nginx);
  }

  async stop(): Promise<void> {
    await this.#nginx?.stop();
    await this.#database.close();
    await this.#fleet.stop();
    await this.#redis?.stop();
    await this.#server?.remove();
  }

  /** The number of instances. */
  get count(): number {
    return this.#fleet.members.length;
  }

  get provider(): Provider {
    return this.#fleet.provider;
  }

  instance(at = this.#turn++): Member {
    return this.#fleet.at(at);
  }

  // ---- interfaces

  async manage(method: string, path: string, { headers = {}, body, at }: RequestOptions = {}): Promise<ManageResponse> {
    const response = await fetch(this.instance(at).url + path, {
      method,
      headers: {
        authorization: `Bearer ${MANAGEMENT_TOKEN}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    return { status: response.status, headers: response.headers, body: isJson ? (JSON.parse(text) as unknown) : text };
  }

  /** The body of a success. @throws otherwise. */
  async ask<Body>(method: string, path: string, asked: RequestOptions = {}): Promise<Body> {
    const answer = await this.manage(method, path, asked);
    if (answer.status >= 300) {
      const why = `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`;
      throw new Error([why, ...this.complaints].join('\n'));
    }
    return answer.body as Body;
  }

  /** The last log lines of the instances that need attention. */
  get complaints(): string[] {
    const logged = this.#fleet.members.flatMap((member) => member.logged);
    return logged.filter((line) => /"level":"(?:warn|error)"/.test(line)).slice(-10);
  }

  /** Follows `Link` from the first page to the last. @returns the items, and the first `X-Total-Count`. */
  // The caller knows the type of the items.
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
  async walk<Item>(path: string): Promise<{ items: Item[]; pages: number; total: number | null }> {
    const items: Item[] = [];
    let total: number | null = null;
    let next: string | undefined = path;
    let pages = 0;
    for (; next !== undefined; pages++) {
      if (pages > 1_000) throw new Error(`${path}: pages without an end`);
      const page: ManageResponse = await this.manage('GET', next);
      if (page.status !== 200) throw new Error(`page ${pages + 1} of ${path}: ${JSON.stringify(page.body)}`);
      items.push(...(page.body as Item[]));
      const said = page.headers.get('x-total-count');
      if (pages === 0 && said !== null) total = Number(said);
      next = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1];
    }
    return { items, pages, total };
  }

  /** The address of /v1: nginx if there is one. */
  clientUrl(at?: number): string {
    return this.#nginx?.url ?? this.instance(at).url;
  }

  /** A request on /v1 with a token. */
  call(secret: string, path = '/v1/models', init: RequestInit & { at?: number } = {}): Promise<Response> {
    return fetch(this.clientUrl(init.at) + path, {
      ...init,
      headers: { authorization: `Bearer ${secret}`, ...(init.headers as Record<string, string> | undefined) },
    });
  }

  /** @returns its status, once the response is complete. */
  async completion(secret: string, model: string, at?: number): Promise<number> {
    const response = await this.call(secret, '/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
      ...(at !== undefined && { at }),
    });
    await response.text();
    return response.status;
  }

  /** Runs `llmp`, as a process. */
  llmp(args: readonly string[], stdin = ''): Promise<Ended> {
    const env = { LLMP_SERVER: this.instance().url, MANAGEMENT_TOKEN, HOME: this.#folders[0], NO_COLOR: '1' };
    return ended(start(args, env), stdin);
  }

  /** A browser that is sent to one instance after the other. */
  visitor(from?: TestBrowser): TestBrowser {
    const visitor = new TestBrowser(this.instance().url, { host: 'localhost' });
    for (const [name, kept] of from?.cookies ?? []) visitor.cookies.set(name, kept);
    visitor.formToken = from?.formToken ?? '';
    return visitor;
  }

  // ---- without the daemons

  /** `audit verify` for the files of an instance, with the daemon's settings. */
  verify(at: number): Promise<Ended> {
    const file = { AUDIT_LOG_FILE: this.auditFile(at) };
    return ended(start(['audit', 'verify'], { ...this.#env, ...file, MANAGEMENT_TOKEN }));
  }

  auditFile(at: number): string {
    return join(this.#folders[at] ?? '', 'audit.log');
  }

  auditLines(at: number): string[] {
    return readFileSync(this.auditFile(at), 'utf8').split('\n').filter(Boolean);
  }

  select<Row extends object>(sql: string, bind?: Bind): Promise<Row[]> {
    return this.#database.select<Row>(sql, bind);
  }

  /** For what only time would bring about. */
  async write(sql: string, bind?: Bind): Promise<void> {
    await this.#database.transact((tx) => tx.execute(sql, bind));
  }

  get store(): Database {
    return this.#database;
  }

  /** Waits until all counts of the instances are in the database: they write them within a second. */
  async settled(tokenId: string, requests: number): Promise<void> {
    await eventually(`${requests} requests are counted`, async () => {
      const [row] = await this.select<{ n: unknown }>('SELECT request_count AS n FROM tokens WHERE id = $tokenId', {
        tokenId,
      });
      return Number(row?.n) === requests;
    });
  }
}

const answerAsProvider: Provider['answer'] = (_req, res, { url, body }) => {
  if (url.startsWith('/v1/chat/completions')) {
    const { model } = JSON.parse(body.toString()) as { model: string };
    const usage = {
      prompt_tokens: PROMPT_TOKENS,
      completion_tokens: COMPLETION_TOKENS,
      total_tokens: PROMPT_TOKENS + COMPLETION_TOKENS,
    };
    json(res, 200, { id: 'c', object: 'chat.completion', model, choices: [], usage });
    return;
  }
  res.setHeader('cache-control', 'max-age=600');
  json(res, 200, { object: 'list', data: [] });
};

/** Runs `work` for each item, with a limit on how many at a time. */
export async function each<Item>(items: readonly Item[], work: (item: Item, index: number) => Promise<unknown>) {
  const waiting = items.map((item, index) => ({ item, index }));
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await work(next.item, next.index);
  };
  await Promise.all(Array.from({ length: 4 }, worker));
}
