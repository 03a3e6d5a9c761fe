/**
 * Connection to Redis with a circuit breaker. All Redis commands use it.
 *
 * **Closed:** commands pass, each with a timeout of 50 ms. After three consecutive failures the connection is *suspect*: commands
 * are refused while a PING on the same connection decides. Replies arrive in the order of the commands, so a reply to the PING
 * shows that all earlier commands were executed, and that only this process or Redis was slow for a moment.
 *
 * **Open:** every command is refused at once, at no cost. The breaker opens when the PING gets no reply, when the connection ends,
 * or when Redis reports that it cannot serve (it is now a replica, it is loading, it cannot write). The socket is destroyed. A new
 * connection, with a new DNS look-up, is attempted with backoff and jitter, on our own clock: the reconnect logic of ioredis is
 * disabled.
 *
 * **Closing again** requires a PING reply in time, and then that every listener has done its work for a new connection.
 */
import { Redis, ReplyError } from 'ioredis';
import { Backoff, withJitter } from '../../core/backoff.js';
import { LogThrottle } from '../../core/log-throttle.js';
import { type Clock, type Log, StoreUnavailable } from '../../core/ports.js';
import type { RedisAddress } from './address.js';
import { factsOf, misfitIn } from './server-facts.js';

const COMMAND_MS = 50;
const CONNECT_MS = 500;
const FAILURES_TO_SUSPECT = 3;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 2_000;
const STABLE_AFTER_MS = 10_000; // A connection that ends sooner is flapping, so its backoff continues to grow.
const REJECTED_DELAY_MS = 10_000; // Wrong credentials rarely become right soon.
const LOG_EVERY_MS = 60_000;

/** Error codes of a server that is reachable but cannot serve. This passes, or DNS soon returns another server. */
const NOT_SERVING = new Set(['READONLY', 'LOADING', 'MASTERDOWN', 'CLUSTERDOWN', 'MISCONF']);
/** Error codes of a server that no longer accepts our credentials: its users were changed. */
const AUTHENTICATION_ERRORS = new Set(['NOAUTH', 'WRONGPASS']);

/** Redis is unavailable: the breaker is open, or Redis did not reply. */
export class RedisUnavailable extends StoreUnavailable {
  override name = 'RedisUnavailable';
}

/** A server of a kind that llmp cannot use. The message says what to do. */
class Misfit extends Error {}

/** Redis replied with an error. */
export class RedisErrorReply extends StoreUnavailable {
  readonly code: string;
  override name = 'RedisErrorReply';

  /** @param code the first word of the error, for example WRONGTYPE. */
  constructor(code: string) {
    super(`Redis returned the error ${code}`);
    this.code = code;
  }
}

/** Lua script, which Redis runs atomically. */
export interface Script {
  name: string;
  lua: string;
  /**
   * Always sent as text with EVAL. Otherwise ioredis sends a digest, and sends the script again after later commands if Redis does
   * not know it.
   */
  keepsOrder?: true;
}

export type Argument = string | Buffer | number;
export type Run = (script: Script, args: readonly Argument[]) => Promise<unknown>;

/** New connection, for the work that must be done before other commands may use it. */
export interface NewConnection {
  run: Run;
  /** Calls `listener` for each message published on the channel. The connection then accepts no other command than PING. */
  subscribe: (channel: string, listener: (message: Buffer) => void) => Promise<void>;
  /** Run ID of the server process. A new one reveals a restarted server, which may have loaded an older snapshot. Null if unknown. */
  runId: string | null;
}

export interface ConnectionOptions {
  address: RedisAddress;
  clock: Clock;
  log: Log;
  /** Command timeout in ms. Default: 50 ms, because a request waits for the reply. */
  commandMs?: number | undefined;
  /** Purpose of the connection, unless it serves requests. Shown in the log and in CLIENT LIST. */
  purpose?: string;
}

// Shared: creating a stack trace for each refused command would be the main cost of an open breaker.
const UNAVAILABLE = new RedisUnavailable('Redis is unavailable');

export class RedisConnection {
  readonly #options: ConnectionOptions;
  readonly #listeners: ((connection: NewConnection) => Promise<void>)[] = [];
  /** The connection in use, suspect or being made. */
  #client: Redis | null = null;
  #state: 'disconnected' | 'preparing' | 'ready' | 'suspect' = 'disconnected';
  #failures = 0;
  #readySinceMs = 0;
  #cancelRetry: (() => void) | null = null;
  #isClosed = false;
  /** Reasons logged during this outage; null while there is no outage. */
  #loggedReasons: Set<string> | null = null;
  readonly #warnings: LogThrottle<'warn'>;
  readonly #delay = new Backoff(FIRST_DELAY_MS, MAX_DELAY_MS);
  #misfit: string | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#warnings = new LogThrottle(options.clock, options.log, LOG_EVERY_MS);
  }

  get isReady(): boolean {
    return this.#state === 'ready';
  }

  /**
   * True when commands that were sent may be lost. False while the connection is suspect or being prepared: then that is not known,
   * or no longer the case.
   */
  get isDisconnected(): boolean {
    return this.#state === 'disconnected';
  }

  /** Why llmp cannot use a server of this kind, and what to do; null if that has not been found. */
  get misfit(): string | null {
    return this.#misfit;
  }

  /** Calls `listener` on each new connection, before any other command. If it fails, the connection is not used. */
  onConnect(listener: (connection: NewConnection) => Promise<void>): void {
    this.#listeners.push(listener);
  }

  /**
   * Connects, and reconnects until `close`. Resolves after the first attempt, within about half a second, whether it succeeded or
   * not.
   */
  async open(): Promise<void> {
    const { address, commandMs = COMMAND_MS, purpose } = this.#options;
    const client = newClient(address, { commandMs, ...(purpose !== undefined && { name: `llmp-${purpose}` }) });
    this.#client = client;
    try {
      const runId = await this.#handshake(client);
      if (client !== this.#client) return;
      this.#state = 'preparing';
      for (const listener of this.#listeners) {
        await listener({
          run: (script, args) => execute(client, script, args),
          subscribe: (channel, onMessage) => subscribe(client, channel, onMessage),
          runId,
        });
      }
      if (client === this.#client) this.#markReady();
    } catch (error) {
      this.#disconnect(client, error);
    }
  }

  /**
   * Runs a script. Bulk replies are buffers.
   *
   * @throws {RedisUnavailable} at once while the breaker is open, otherwise within the command timeout. @throws {RedisErrorReply}
   */
  async run(script: Script, args: readonly Argument[]): Promise<unknown> {
    return this.#send((client) => execute(client, script, args));
  }

  /** Runs a Redis command. Bulk replies are buffers. @throws {RedisUnavailable} @throws {RedisErrorReply} */
  async call(command: string, args: readonly Argument[]): Promise<unknown> {
    return this.#send((client) => client.callBuffer(command, ...args));
  }

  /** @throws {RedisUnavailable} @throws {RedisErrorReply} */
  async ping(): Promise<void> {
    await this.#send((client) => client.ping());
  }

  /** Closes the connection and makes a new one. For callers that know that a command may be lost. */
  abandon(cause: Error): void {
    if (this.#client) this.#disconnect(this.#client, cause);
  }

  close(): void {
    this.#isClosed = true;
    this.#state = 'disconnected';
    this.#cancelRetry?.();
    this.#client?.disconnect();
    this.#client = null;
  }

  async #send<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    const client = this.#client;
    if (client === null || this.#state !== 'ready') throw UNAVAILABLE;
    try {
      const reply = await command(client);
      this.#failures = 0;
      return reply;
    } catch (error) {
      throw this.#classify(client, error);
    }
  }

  /** Updates the breaker after an error, and returns the error for the caller. */
  #classify(client: Redis, error: unknown): StoreUnavailable {
    if (isReply(error)) {
      const code = codeOf(error);
      const misfit = misfitIn(error.message);
      if (misfit !== null) this.#disconnect(client, new Misfit(misfit));
      else if (NOT_SERVING.has(code) || AUTHENTICATION_ERRORS.has(code)) this.#disconnect(client, error);
      // Possibly every command fails: memory is full, or a permission is missing.
      else
        this.#warnings.record('warn', 'Redis rejects commands', () => ({ ...this.#logFields, reason: error.message }));
      return new RedisErrorReply(code);
    }
    if (client === this.#client && this.#state === 'ready' && ++this.#failures >= FAILURES_TO_SUSPECT) {
      void this.#suspect(client);
    }
    return new RedisUnavailable('Redis did not reply', { cause: error });
  }

  async #suspect(client: Redis): Promise<void> {
    this.#state = 'suspect';
    try {
      await client.ping();
      if (client === this.#client) this.#state = 'ready';
      this.#failures = 0;
    } catch (error) {
      this.#disconnect(client, error);
    }
  }

  #markReady(): void {
    const { clock, log } = this.#options;
    this.#state = 'ready';
    this.#failures = 0;
    this.#readySinceMs = clock.monotonic();
    log.info(this.#loggedReasons === null ? 'Redis connected' : 'Redis connected again', this.#logFields);
    this.#loggedReasons = null;
  }

  /** Opens the breaker, or keeps it open, and schedules the next attempt. */
  #disconnect(client: Redis, error: unknown): void {
    if (client !== this.#client) return; // Closed already.
    const { clock } = this.#options;
    if (this.#state === 'ready' && clock.monotonic() - this.#readySinceMs > STABLE_AFTER_MS) this.#delay.reset();
    this.#client = null;
    this.#state = 'disconnected';
    client.disconnect();
    this.#logLoss(error);
    const isRejected = error instanceof Misfit || (isReply(error) && !NOT_SERVING.has(codeOf(error)));
    const delayMs = this.#delay.next();
    this.#cancelRetry = clock.after(isRejected ? withJitter(REJECTED_DELAY_MS) : delayMs, () => {
      this.#cancelRetry = null;
      void this.open();
    });
  }

  /** @returns the server's run ID, if known. @throws if the server cannot serve. */
  async #handshake(client: Redis): Promise<string | null> {
    const broken = new Promise<never>((_resolve, reject) => {
      // Also errors that ioredis would ignore, such as a refused SELECT: the connection would use the wrong database.
      client.on('error', reject);
      client.once('close', () => {
        this.#disconnect(client, new Error('the connection ended'));
      });
    });
    const greeted = client.connect().then(async () => {
      await client.ping();
      const { isReplica, misfit, info } = await factsOf(client);
      this.#misfit = misfit;
      if (misfit !== null) throw new Misfit(misfit);
      // After a failover DNS may return, for a while, a server that accepts no writes.
      if (isReplica) throw new Error('the server is a replica');
      return info?.get('run_id') ?? null;
    });
    return Promise.race([greeted, broken]);
  }

  #logLoss(error: unknown): void {
    if (this.#isClosed) return;
    const reason = isReply(error) ? codeOf(error) : error instanceof Misfit ? 'misfit' : 'unreachable';
    if (this.#loggedReasons?.has(reason)) return;
    this.#loggedReasons ??= new Set();
    this.#loggedReasons.add(reason);
    this.#options.log.warn('Redis unavailable, retrying', { ...this.#logFields, reason: messageOf(error) });
  }

  /** Fields for the log. */
  get #logFields(): { address: string; purpose?: string } {
    const { address, purpose } = this.#options;
    return { address: `${address.host}:${address.port}`, ...(purpose !== undefined && { purpose }) };
  }
}

/**
 * Creates a client that is not connected yet and never reconnects. It queues no commands and sends no command twice.
 *
 * @param commandMs command timeout in ms.
 * @param name shown in CLIENT LIST.
 */
export function newClient(
  address: RedisAddress,
  { commandMs, name = 'llmp' }: { commandMs: number; name?: string },
): Redis {
  const { host, port, database, username, password, isEncrypted } = address;
  return new Redis({
    host,
    port,
    db: database,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(isEncrypted && { tls: {} }),
    lazyConnect: true,
    retryStrategy: null,
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableReadyCheck: false,
    connectTimeout: CONNECT_MS,
    commandTimeout: commandMs,
    disconnectTimeout: 1,
    protocol: 2,
    connectionName: name,
    disableClientInfo: true,
  });
}

function execute(client: Redis, { name, lua, keepsOrder }: Script, args: readonly Argument[]): Promise<unknown> {
  if (keepsOrder) return client.callBuffer('EVAL', lua, 0, ...args);
  const commands = client as unknown as Record<string, (...args: Argument[]) => Promise<unknown>>;
  // ioredis sends the digest of a script that this connection has sent before, and the text again if Redis does not know it.
  if (!(name in commands)) client.defineCommand(name, { lua, numberOfKeys: 0 });
  return commands[`${name}Buffer`]?.(...args) ?? Promise.reject(new TypeError(`no command ${name}`));
}

async function subscribe(client: Redis, channel: string, listener: (message: Buffer) => void): Promise<void> {
  client.on('messageBuffer', (from: Buffer, message: Buffer) => {
    if (from.toString() === channel) listener(message);
  });
  await client.subscribe(channel);
}

const isReply = (error: unknown): error is Error => error instanceof ReplyError;

/** The first word of an error reply. Before Redis 7, the error of a script began with ERR and contained the word. */
const codeOf = ({ message }: Error): string =>
  /^ERR Error running script.*? -([A-Z]+) /.exec(message)?.[1] ?? message.split(' ', 1)[0] ?? '';

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
