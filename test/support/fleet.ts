/**
 * Several `llmp daemon` processes on one database that can be killed, frozen and restarted, with one provider in this process that counts
 * the requests of each token.
 */
import { get } from 'node:http';
import { join } from 'node:path';
import type { WireProject, WireStatus, WireTokenCreated } from '../../daemon/api/contract.js';
import { realClock } from '../../daemon/process/clock.js';
import { StoreUnavailable } from '../../daemon/core/ports.js';
import type { Bind, Database } from '../../daemon/store/sql/database.js';
import { ServerDatabase } from '../../daemon/store/sql/server-database.js';
import { SqliteDatabase } from '../../daemon/store/sql/sqlite-database.js';
import { canaryEncryptionKey } from './canaries.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from './daemon.js';
import type { DatabaseServer } from './database-servers.js';
import { eventually } from './eventually.js';
import { type DaemonProcess, launchDaemon } from './process.js';
import { json, type Provider, startProvider } from './provider.js';
import { freezeProcess } from './freeze-process.js';

// Longer than an instance may be silent before the others mark it as expired.
const SILENCE_MS = 60_000;
const MOST_TRIES = 5;

export interface FleetOptions {
  count?: number;
  env?: Record<string, string>;
  /** For the instance with this index. */
  envOf?: (index: number, env: Record<string, string>) => Record<string, string>;
  /** For Node itself, in each of them. */
  nodeOptions?: readonly string[];
}

/** The database's row of a token. */
export interface TokenCounts {
  requestCount: number;
  reserved: number;
  /** What instances hold that have not expired. */
  leased: number;
}

/** A response of the management API. */
export interface ManageResponse {
  status: number;
  // The test knows what a response contains.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

/** One instance of the fleet, over all of its restarts. */
export class Member {
  readonly #env: Record<string, string>;
  readonly #nodeOptions: readonly string[];
  #life: DaemonProcess | null = null;
  #url = '';
  #isListening = false;
  instanceId = '';
  /** The instance IDs of its runs that ended with a kill. */
  readonly killed: string[] = [];
  isFrozen = false;

  constructor(env: Record<string, string>, nodeOptions: readonly string[]) {
    this.#env = env;
    this.#nodeOptions = nodeOptions;
  }

  get isUp(): boolean {
    return this.#isListening && !this.isFrozen;
  }

  get url(): string {
    return this.#url;
  }

  /** Everything that it has logged since its last start. */
  get logged(): readonly string[] {
    return this.#life?.logged ?? [];
  }

  /** Starts it again, on its own port. Resolves when it listens. */
  async begin(): Promise<void> {
    const life = launchDaemon(this.#env, { nodeOptions: this.#nodeOptions });
    this.#life = life;
    this.#url = await life.listening;
    const status = (await this.manage('GET', '/manage/status')).body as WireStatus;
    this.instanceId = status.instance;
    this.#isListening = true;
  }

  get pid(): number {
    return this.#life?.child.pid ?? 0;
  }

  /** What it has written to standard error since its last start. */
  get complaints(): string {
    return this.#life?.printed.stderr ?? '';
  }

  /** Its exit code, once it has ended; null if a signal ended it. */
  get ended(): Promise<number | null> {
    return this.#life?.exit ?? Promise.resolve(null);
  }

  signal(signal: NodeJS.Signals): void {
    this.#life?.child.kill(signal);
  }

  /** As `kill -9` does, whether it is frozen or not. */
  async kill(): Promise<void> {
    const life = this.#take();
    if (!life) return;
    this.killed.push(this.instanceId);
    await life.kill();
  }

  /** @throws unless its exit code is 0. */
  async stop(): Promise<void> {
    this.resume();
    const life = this.#take();
    if (!life) return;
    life.child.kill('SIGTERM');
    const code = await life.exit;
    if (code !== 0) throw new Error(`a daemon ended with ${code}: ${life.printed.stderr}`);
  }

  #take(): DaemonProcess | null {
    const life = this.#life;
    this.#life = null;
    this.#isListening = false;
    this.isFrozen = false;
    return life;
  }

  /** As if its machine were frozen: connections stay, nothing responds. */
  freeze(): void {
    const pid = this.#life?.child.pid;
    this.isFrozen = pid !== undefined && freezeProcess(pid);
  }

  resume(): void {
    if (this.isFrozen) this.#life?.child.kill('SIGCONT');
    this.isFrozen = false;
  }

  async manage(method: string, path: string, body?: unknown, requestId?: string): Promise<ManageResponse> {
    const response = await fetch(this.#url + path, {
      method,
      headers: {
        authorization: `Bearer ${MANAGEMENT_TOKEN}`,
        'content-type': 'application/json',
        ...(requestId !== undefined && { 'x-request-id': requestId }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
  }

  /**
   * A request with `token`. Its path contains the token's ID, because the provider does not see the token itself.
   * @returns its status; null if the connection broke before the response was complete.
   */
  call(token: Pick<WireTokenCreated, 'id' | 'token'>, query = ''): Promise<number | null> {
    return new Promise((resolve) => {
      const broken = () => {
        resolve(null);
      };
      // On a new connection: an idle one may be closed for its age just as it is used again.
      const options = { agent: false as const, headers: { authorization: `Bearer ${token.token}` } };
      const outgoing = get(`${this.#url}/v1/of/${token.id}${query}`, options, (response) => {
        response.on('error', broken).resume();
        response.on('close', () => {
          resolve(response.complete ? (response.statusCode ?? null) : null);
        });
      });
      outgoing.on('error', broken);
    });
  }
}

export class Fleet {
  readonly provider: Provider;
  readonly members: Member[] = [];
  /** For what tests read, and for moving time, without the daemons. */
  readonly #database: Database;
  #projects = 0;
  readonly #reached = new Map<string, number>();
  /** Called for each request that reaches the provider. */
  onReached: ((url: string) => void) | null = null;
  /** How long the provider waits before it responds. */
  thinkMs: () => number = () => 0;

  private constructor(provider: Provider, database: Database) {
    this.provider = provider;
    this.#database = database;
    provider.onHead = ({ url }) => {
      const id = tokenOf(url);
      this.#reached.set(id, this.reached(id) + 1);
      this.onReached?.(url);
    };
    provider.answer = (_req, res) => {
      setTimeout(() => {
        json(res, 200, {});
      }, this.thinkMs());
    };
  }

  /** @param server null: SQLite, which only one instance at a time can use. */
  static async start(server: DatabaseServer | null, options: FleetOptions = {}): Promise<Fleet> {
    const dir = temporaryFolder();
    const provider = await startProvider();
    const env: Record<string, string> = {
      MANAGEMENT_TOKEN,
      UPSTREAM_BASE_URL: provider.url,
      ENCRYPTION_KEY: canaryEncryptionKey(),
      SHUTDOWN_DELAY: '0',
      SHUTDOWN_GRACE: '0',
      DATABASE_URL: server ? await server.newDatabase() : join(dir, 'llmp.db'),
      ...(server && { DB_DRIVER: server.kind }),
      ...options.env,
    };
    const url = env.DATABASE_URL ?? '';
    const fleet = new Fleet(
      provider,
      server
        ? new ServerDatabase({ dialect: server.kind, url, poolSize: 2, clock: realClock })
        : new SqliteDatabase(url),
    );
    for (let index = 0; index < (options.count ?? 4); index++) {
      const own = { ...env, AUDIT_LOG_FILE: join(temporaryFolder(), 'audit.log'), ...options.envOf?.(index, env) };
      fleet.members.push(new Member(own, options.nodeOptions ?? []));
    }
    await Promise.all(fleet.members.map((member) => member.begin()));
    return fleet;
  }

  at(index: number): Member {
    const member = this.members[index % this.members.length];
    if (!member) throw new RangeError('a fleet without members');
    return member;
  }

  get up(): Member[] {
    return this.members.filter(({ isUp }) => isUp);
  }

  /** The number of a token's requests that reached the provider. */
  reached(tokenId: string): number {
    return this.#reached.get(tokenId) ?? 0;
  }

  async createProject(): Promise<WireProject> {
    return (await this.#manageAnywhere('POST', '/manage/projects', {
      name: `project ${++this.#projects}`,
      api_key: UPSTREAM_KEY,
    })) as WireProject;
  }

  async createToken(projectId: string, maxRequests: number, fields: object = {}): Promise<WireTokenCreated> {
    const draft = { project_id: projectId, ...(maxRequests > 0 && { max_requests: maxRequests }), ...fields };
    return (await this.#manageAnywhere('POST', '/manage/tokens', draft)) as WireTokenCreated;
  }

  async #manageAnywhere(method: string, path: string, body: unknown): Promise<unknown> {
    const [member] = this.up;
    const answer = await member?.manage(method, path, body);
    if (answer?.status !== 201) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer.body;
  }

  /** Reads from the database. */
  select<Row extends object>(sql: string, bind: Bind = {}): Promise<Row[]> {
    return patiently(() => this.#database.select<Row>(sql, bind));
  }

  /**
   * Holds locks in the database. @param sql a SELECT that locks rows.
   * @returns a function that releases them.
   */
  async lock(sql: string): Promise<() => Promise<void>> {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let isLocked: () => void = () => undefined;
    const locked = new Promise<void>((resolve) => (isLocked = resolve));
    const holding = this.#database.transact(async (tx) => {
      await tx.select(sql);
      isLocked();
      await released;
    });
    await Promise.race([locked, holding]);
    return () => {
      release();
      return holding;
    };
  }

  async counted(tokenId: string): Promise<TokenCounts> {
    const [row] = await this.select<Record<'request_count' | 'reserved' | 'leased', number | string>>(
      `SELECT request_count, reserved,
         (SELECT COALESCE(SUM(units), 0) FROM leases WHERE token_id = tokens.id) AS leased
       FROM tokens WHERE id = $tokenId`,
      { tokenId },
    );
    if (!row) throw new Error('no such token');
    return { requestCount: Number(row.request_count), reserved: Number(row.reserved), leased: Number(row.leased) };
  }

  /** The instances that send no heartbeats: the killed and the frozen. */
  get #silent(): string[] {
    return this.members.flatMap(({ killed, isFrozen, instanceId }) => (isFrozen ? [...killed, instanceId] : killed));
  }

  /** Moves time by more than half a minute for the killed and the frozen instances. */
  async silence(): Promise<void> {
    const ids = this.#silent.join("', '");
    const silence = `UPDATE instances SET heartbeat_at = heartbeat_at - ${SILENCE_MS} WHERE id IN ('${ids}')`;
    await patiently(() => this.#database.transact((tx) => tx.execute(silence)));
  }

  /** Has the killed and the frozen instances marked as expired: an instance that starts looks for them. */
  async expireSilent(by: Member): Promise<void> {
    await by.stop();
    await this.silence();
    await by.begin();
    const silent = new Set(this.#silent);
    await eventually('the dead instances have expired', async () => {
      const rows = await this.select<{ id: string }>('SELECT id FROM instances WHERE expired_at = 0');
      return !rows.some(({ id }) => silent.has(id));
    });
  }

  /** Ends everything, in any state. @throws unless all running instances end with code 0. */
  async stop(): Promise<void> {
    const ends = await Promise.allSettled(this.members.map((member) => member.stop()));
    await Promise.all(this.members.map((member) => member.kill()));
    await this.#database.close();
    await this.provider.stop();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }
}

/** A busy machine may take longer than a daemon would wait. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || tries === MOST_TRIES) throw error;
    }
  }
}

const tokenOf = (url: string) => /^\/v1\/of\/([^?]*)/.exec(url)?.[1] ?? '';
