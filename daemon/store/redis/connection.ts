/**
 * The connection that all commands to Redis take, behind one breaker.
 *
 * **Closed** the breaker lets commands through, each with 50 ms. Three that fail in a row make it *suspect* the connection:
 * commands are refused while a PING on the same connection decides. Replies come in the order of the commands, so if that
 * is answered all that was sent has been done, and only this process, or Redis, was slow for a moment.
 *
 * **Open** every command is refused at once and costs nothing. It opens when the PING is not answered, the connection ends, or
 * Redis says that it cannot serve (it is a replica now, it loads, it cannot write). The socket is destroyed: a new one, whose
 * address is looked up anew, is tried with back-off and jitter, by our clock. ioredis itself never connects again.
 *
 * **Closing** takes a PING answered in time, and then that every listener has done what must be done before the first command.
 */
import { Redis, ReplyError } from 'ioredis';
import { type Clock, type Log, StoreUnavailable } from '../../core/ports.js';
import type { RedisAddress } from './address.js';

const COMMAND_MS = 50;
const CONNECT_MS = 500;
const FAILURES_TO_SUSPECT = 3;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;
const STEADY_AFTER_MS = 10_000; // A connection that ends sooner is flapping, and the back-off goes on.
const REFUSED_DELAY_MS = 10_000; // Wrong credentials do not become right by themselves.
const TELL_EVERY_MS = 60_000;

/** Of one that is there and cannot serve. That passes, or its name leads to another one soon. */
const CANNOT_SERVE = new Set(['READONLY', 'LOADING', 'MASTERDOWN', 'CLUSTERDOWN', 'MISCONF']);
/** Of one that does not know us, though it did: its users were changed. */
const STRANGERS = new Set(['NOAUTH', 'WRONGPASS']);

/** Nobody is asked: the breaker is open, or there was no answer. */
export class RedisAway extends StoreUnavailable {
  override name = 'RedisAway';
}

/** Redis answered, but with an error. */
export class RedisRefused extends StoreUnavailable {
  readonly code: string;
  override name = 'RedisRefused';

  /** @param code its first word, such as WRONGTYPE. */
  constructor(code: string) {
    super(`Redis answered ${code}`);
    this.code = code;
  }
}

/** Lua, run whole and alone. */
export interface Script {
  name: string;
  lua: string;
  /** Never sent again by itself, behind what was sent after it; costs the text each time. */
  keepsOrder?: true;
}

export type Argument = string | Buffer | number;
export type Run = (script: Script, args: readonly Argument[]) => Promise<unknown>;

/** A new connection, before others may use it. */
export interface Arrival {
  run: Run;
  /** Has `listener` told of what is published there from now on. Such a connection takes no commands but PING any more. */
  subscribe: (channel: string, listener: (message: Buffer) => void) => Promise<void>;
  /** Of the server process, so that another one, with what an older snapshot held, is told apart; null where that is not told. */
  runId: string | null;
}

export interface ConnectionOptions {
  address: RedisAddress;
  clock: Clock;
  log: Log;
  /** How long a command may take; 50 ms, for a request waits for it, unless given. */
  commandMs?: number | undefined;
  /** What it is for, when that is not requests: for the log, and for whoever lists the clients of Redis. */
  purpose?: string;
}

const AWAY = new RedisAway('Redis is away'); // One for all: a stack for each would be the cost of an open breaker.

export class RedisConnection {
  readonly #options: ConnectionOptions;
  readonly #listeners: ((arrival: Arrival) => Promise<void>)[] = [];
  /** The one that is used, suspected or being made. */
  #client: Redis | null = null;
  #state: 'away' | 'arriving' | 'up' | 'suspected' = 'away';
  #failures = 0;
  #delayMs = FIRST_DELAY_MS;
  #upSinceMs = 0;
  #cancelRetry: (() => void) | null = null;
  #isClosed = false;
  /** What was said of this outage; null while there is none. */
  #told: Set<string> | null = null;
  #toldOfRefusalAtMs = -Infinity;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  get isUp(): boolean {
    return this.#state === 'up';
  }

  /** What was sent may be lost. While a connection is only suspected, or arrives, that is not known or not so any more. */
  get isAway(): boolean {
    return this.#state === 'away';
  }

  /** Has `listener` called on each new connection, before any other command. If it fails the connection is not used. */
  onArrival(listener: (arrival: Arrival) => Promise<void>): void {
    this.#listeners.push(listener);
  }

  /** Begins to connect, and goes on until it is closed. Resolves, in half a second or so, when the first try is over, good or not. */
  async open(): Promise<void> {
    const { address, commandMs = COMMAND_MS, purpose } = this.#options;
    const client = newClient(address, { commandMs, ...(purpose !== undefined && { name: `llmp-${purpose}` }) });
    this.#client = client;
    try {
      const runId = await this.#greet(client);
      if (client !== this.#client) return;
      this.#state = 'arriving';
      for (const listener of this.#listeners) {
        await listener({
          run: (script, args) => execute(client, script, args),
          subscribe: (channel, heard) => subscribe(client, channel, heard),
          runId,
        });
      }
      if (client === this.#client) this.#goUp();
    } catch (error) {
      this.#lose(client, error);
    }
  }

  /**
   * Runs a script. Bulk replies are buffers.
   *
   * @throws {RedisAway} at once while the breaker is open, otherwise within 50 ms. @throws {RedisRefused}
   */
  async run(script: Script, args: readonly Argument[]): Promise<unknown> {
    return this.#send((client) => execute(client, script, args));
  }

  /**
   * Runs a command of Redis' own. Bulk replies are buffers.
   *
   * @throws {RedisAway} @throws {RedisRefused}
   */
  async call(command: string, args: readonly Argument[]): Promise<unknown> {
    return this.#send((client) => client.callBuffer(command, ...args));
  }

  /** @throws {RedisAway} @throws {RedisRefused} */
  async ping(): Promise<void> {
    await this.#send((client) => client.ping());
  }

  /** Gives the connection up, and makes another: what was sent, and must not be lost, was. */
  abandon(cause: Error): void {
    if (this.#client) this.#lose(this.#client, cause);
  }

  close(): void {
    this.#isClosed = true;
    this.#state = 'away';
    this.#cancelRetry?.();
    this.#client?.disconnect();
    this.#client = null;
  }

  async #send<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    const client = this.#client;
    if (client === null || this.#state !== 'up') throw AWAY;
    try {
      const reply = await command(client);
      this.#failures = 0;
      return reply;
    } catch (error) {
      throw this.#judge(client, error);
    }
  }

  /** What an error means for the breaker, and for who sent the command. */
  #judge(client: Redis, error: unknown): StoreUnavailable {
    if (isReply(error)) {
      const code = codeOf(error);
      if (CANNOT_SERVE.has(code) || STRANGERS.has(code)) this.#lose(client, error);
      else this.#tellOfRefusal(error.message);
      return new RedisRefused(code);
    }
    if (client === this.#client && this.#state === 'up' && ++this.#failures >= FAILURES_TO_SUSPECT) {
      void this.#suspect(client);
    }
    return new RedisAway('Redis did not answer', { cause: error });
  }

  async #suspect(client: Redis): Promise<void> {
    this.#state = 'suspected';
    try {
      await client.ping();
      if (client === this.#client) this.#state = 'up';
      this.#failures = 0;
    } catch (error) {
      this.#lose(client, error);
    }
  }

  #goUp(): void {
    const { clock, log } = this.#options;
    this.#state = 'up';
    this.#failures = 0;
    this.#upSinceMs = clock.monotonic();
    log.info(this.#told === null ? 'connected to Redis' : 'Redis is back', this.#which);
    this.#told = null;
  }

  /** Opens the breaker, or leaves it open, and tries again later. */
  #lose(client: Redis, error: unknown): void {
    if (client !== this.#client) return; // Given up before.
    const { clock } = this.#options;
    if (this.#state === 'up' && clock.monotonic() - this.#upSinceMs > STEADY_AFTER_MS) this.#delayMs = FIRST_DELAY_MS;
    this.#client = null;
    this.#state = 'away';
    client.disconnect();
    this.#tellOfLoss(error);
    const delayMs = isReply(error) && !CANNOT_SERVE.has(codeOf(error)) ? REFUSED_DELAY_MS : this.#delayMs;
    this.#delayMs = Math.min(2 * this.#delayMs, LONGEST_DELAY_MS);
    // Between half of it and all of it: instances that lost Redis together are not to come back together.
    this.#cancelRetry = clock.after(delayMs * (0.5 + Math.random() / 2), () => {
      this.#cancelRetry = null;
      void this.open();
    });
  }

  /** @returns the server's run id, if it tells. @throws when it cannot serve. */
  async #greet(client: Redis): Promise<string | null> {
    const broken = new Promise<never>((_resolve, reject) => {
      // Also what ioredis would go on after, such as a SELECT that is refused: we would be in another's database.
      client.on('error', reject);
      client.once('close', () => {
        this.#lose(client, new Error('the connection ended'));
      });
    });
    const greeted = client.connect().then(async () => {
      await client.ping();
      return runIdFrom(await client.info().catch(nothingIfForbidden));
    });
    return Promise.race([greeted, broken]);
  }

  #tellOfLoss(error: unknown): void {
    if (this.#isClosed) return;
    const reason = isReply(error) ? codeOf(error) : 'unreachable';
    if (this.#told?.has(reason)) return;
    this.#told ??= new Set();
    this.#told.add(reason);
    this.#options.log.warn('Redis is away', { ...this.#which, reason: messageOf(error) });
  }

  /** For the log. */
  get #which(): { address: string; purpose?: string } {
    const { address, purpose } = this.#options;
    return { address: `${address.host}:${address.port}`, ...(purpose !== undefined && { purpose }) };
  }

  /** It may be every command that is refused: full memory, a right that is missing. */
  #tellOfRefusal(message: string): void {
    const { clock, log } = this.#options;
    const nowMs = clock.monotonic();
    if (nowMs - this.#toldOfRefusalAtMs < TELL_EVERY_MS) return;
    this.#toldOfRefusalAtMs = nowMs;
    log.warn('Redis refuses commands', { ...this.#which, reason: message });
  }
}

/**
 * One connection, that is not made yet, and is not made again by itself. Nothing waits for it, and nothing is sent twice.
 *
 * @param commandMs how long a command may take.
 * @param name for whoever lists the clients of Redis.
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
  // ioredis sends the digest of one that this connection has sent before, and the text again where Redis does not know it.
  if (!(name in commands)) client.defineCommand(name, { lua, numberOfKeys: 0 });
  return commands[`${name}Buffer`]?.(...args) ?? Promise.reject(new TypeError(`no command ${name}`));
}

async function subscribe(client: Redis, channel: string, listener: (message: Buffer) => void): Promise<void> {
  client.on('messageBuffer', (_channel: Buffer, message: Buffer) => {
    listener(message);
  });
  await client.subscribe(channel);
}

const isReply = (error: unknown): error is Error => error instanceof ReplyError;

/** The word that an error reply begins with. Before Redis 7 that of a script began with ERR, and had the word inside. */
const codeOf = ({ message }: Error): string =>
  /^ERR Error running script.*? -([A-Z]+) /.exec(message)?.[1] ?? message.split(' ', 1)[0] ?? '';

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Who may not ask gets no run id. */
function nothingIfForbidden(error: unknown): string {
  if (isReply(error)) return '';
  throw error;
}

function runIdFrom(info: string): string | null {
  // After a failover the name leads, maybe for a while yet, to one that takes no writes.
  if (/^role:slave\b/m.test(info)) throw new Error('it is a replica');
  return /^run_id:(\w+)/m.exec(info)?.[1] ?? null;
}
