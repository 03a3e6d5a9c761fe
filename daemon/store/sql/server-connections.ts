/** Connections to PostgreSQL and MySQL: how they are opened and closed. */
import { Socket } from 'node:net';
import { BaseError, ConnectionError, type Options, Sequelize, Transaction } from 'sequelize';
import type { DatabaseServerAddress } from '../../../config/database-url.js';
import { withTimeout } from '../../core/timing.js';
import type { Clock } from '../../core/ports.js';
import type { DatabaseTimeouts } from './database.js';
import { MYSQL_NUMBERS, type PostgresTypes, readPostgresNumbers } from './numbers.js';
import { bindingOptions, bound, type ChannelBinding } from './channel-binding.js';

const IDLE_MS = 20_000;
const DISCONNECT_MS = 1_000;
const LOCK_S = 5;
// How long the server keeps an unused connection; longer than our pool does. On MySQL this is the only such limit.
const UNUSED_S = 40;

// Strict mode: a value that does not fit causes an error instead of being changed.
const MYSQL_SESSION = `SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = ${LOCK_S}`;
// Some are for MariaDB only, some for MySQL only.
const mysqlLimits = ({ serverStatementMs, idleTransactionMs }: ServerLimits) => [
  `SET SESSION max_statement_time = ${Math.ceil(serverStatementMs / 1000)}`,
  `SET SESSION max_execution_time = ${serverStatementMs}`,
  `SET SESSION idle_transaction_timeout = ${Math.ceil(idleTransactionMs / 1000)}`,
  `SET SESSION wait_timeout = ${UNUSED_S}`,
];

/** What the server ends by itself. */
type ServerLimits = Pick<DatabaseTimeouts, 'serverStatementMs' | 'idleTransactionMs'>;

export interface PoolOptions {
  server: DatabaseServerAddress;
  /** CA certificates in PEM; null: those of the system. */
  certificates: string | null;
  sockets: Sockets;
  clock: Pick<Clock, 'after'>;
  /** Called for each statement. */
  onStatement: () => void;
  limits: ServerLimits;
}

/** @param limitMs timeout to get a free connection or to open one. */
export function createPool(connecting: PoolOptions, size: number, limitMs: number): Sequelize {
  const { server, onStatement, clock } = connecting;
  const { driver, host, port, socket, user, password, database } = server;
  const isPostgres = driver === 'postgres';
  const optional: Partial<Options> = {};
  if (user !== undefined) optional.username = user;
  if (password !== undefined) optional.password = password;
  const sequelize = new Sequelize({
    ...optional,
    dialect: driver,
    host: (isPostgres ? socket : null) ?? host,
    port,
    database,
    // Without this, Sequelize asks for the version on a connection outside of the pool, without a timeout. All supported versions
    // are at least these.
    databaseVersion: isPostgres ? '12.0.0' : '8.0.0',
    pool: { max: size, min: 0, acquire: limitMs, idle: IDLE_MS },
    // After waiting for a lock, a transaction must see current rows, not those read before.
    isolationLevel: Transaction.ISOLATION_LEVELS.READ_COMMITTED,
    timezone: '+00:00',
    dialectOptions: isPostgres ? postgresOptions(connecting, limitMs) : mysqlOptions(connecting, limitMs),
    // Only counted: logging the statement would log bind values.
    logging: onStatement,
  } as Options);
  sequelize.addHook('afterConnect', isPostgres ? setUpPostgres : (opened) => setUpMysql(opened, connecting.limits));
  catchEarlyErrors(sequelize.connectionManager, server.channelBinding);
  limitDisconnectTime(sequelize.connectionManager, clock);
  return sequelize;
}

function postgresOptions({ sockets, ...connecting }: PoolOptions, limitMs: number) {
  return {
    application_name: 'llmp',
    connectionTimeoutMillis: limitMs,
    statement_timeout: connecting.limits.serverStatementMs,
    lock_timeout: LOCK_S * 1000,
    idle_in_transaction_session_timeout: connecting.limits.idleTransactionMs,
    stream: () => sockets.create(),
    ...tlsOptions(connecting),
  };
}

function mysqlOptions({ sockets, ...connecting }: PoolOptions, limitMs: number) {
  const { host, port, socket } = connecting.server;
  return {
    connectTimeout: limitMs,
    charset: 'utf8mb4',
    // UPDATE reports the rows it matched, as on the other databases, not only those that it changed.
    flags: ['FOUND_ROWS'],
    // They replace Sequelize's `typeCast`, which is for dates: the tables have none.
    ...MYSQL_NUMBERS,
    stream: () => (socket === null ? sockets.create().connect(port, host) : sockets.create().connect(socket)),
    ...(socket !== null && { socketPath: socket }),
    ...tlsOptions(connecting),
  };
}

/** `verifyIdentity` is for mysql2; pg checks the host name whenever it checks the certificate. */
function tlsOptions({ server: { tls }, certificates }: Pick<PoolOptions, 'server' | 'certificates'>) {
  if (tls === 'disable') return {};
  if (tls === 'require') return { ssl: { rejectUnauthorized: false } };
  return {
    ssl: { rejectUnauthorized: true, verifyIdentity: true, ...(certificates !== null && { ca: certificates }) },
  };
}

function setUpPostgres(opened: unknown): void {
  readPostgresNumbers(opened as PostgresTypes);
}

/** The part of the driver's connection that is needed to set it up. */
interface MysqlConnection {
  query(sql: string, done: (error: Error | null) => void): void;
  destroy(): void;
}

async function setUpMysql(opened: unknown, limits: ServerLimits): Promise<void> {
  const connection = opened as MysqlConnection;
  const run = (sql: string) =>
    new Promise<void>((resolve, reject) => {
      connection.query(sql, (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  try {
    await run(MYSQL_SESSION);
  } catch (error) {
    connection.destroy(); // It is not in the pool yet.
    throw error;
  }
  for (const sql of mysqlLimits(limits)) await run(sql).catch(() => undefined);
}

interface Listening {
  on(event: 'error', listener: () => void): this;
}

/** The part of Sequelize's connection managers that is patched here: one of them uses `Client`, the other `createConnection`. */
interface Connector {
  lib: { Client?: new (config: unknown) => Listening; createConnection?: (config: unknown) => Listening };
  connect(config: unknown): Promise<unknown>;
}

/**
 * Adds an error listener to each new connection. Sequelize adds its own a moment after the driver has connected. An error with the
 * last bytes of the handshake, from a server that is shutting down, would have no listener and end the process. With this listener,
 * the first query on the connection fails instead.
 */
function catchEarlyErrors(connectionManager: unknown, channelBinding: ChannelBinding): void {
  const manager = connectionManager as Connector;
  const { lib } = manager;
  const listened = <T extends Listening>(connection: T): T => connection.on('error', () => undefined);
  const { Client, createConnection } = lib;
  const replaced = {
    ...(Client && {
      Client: function (config: object) {
        return listened(bound(new Client({ ...config, ...bindingOptions(channelBinding) }), channelBinding));
      },
    }),
    ...(createConnection && { createConnection: (config: unknown) => listened(createConnection(config)) }),
  };
  manager.lib = Object.create(lib, Object.getOwnPropertyDescriptors(replaced)) as Connector['lib'];
  const connect = manager.connect.bind(manager);
  manager.connect = async (config) => {
    try {
      return await connect(config);
    } catch (error) {
      throw error instanceof BaseError || !(error instanceof Error) ? error : new ConnectionError(error);
    }
  };
}

/** pg has the socket, with or without TLS, one level deeper. */
type Connected = { connection: { stream: Socket } } | { stream: Socket };

/**
 * Limits the time to close a connection. The drivers tell the server and wait for it, which takes forever if the server hangs. If
 * the server is already gone, the driver's error would be an unhandled rejection and end the process.
 */
function limitDisconnectTime(connectionManager: unknown, clock: Pick<Clock, 'after'>): void {
  const manager = connectionManager as { disconnect(connection: Connected): Promise<void> };
  const disconnect = manager.disconnect.bind(manager);
  manager.disconnect = async (connection) => {
    const heard = disconnect(connection).catch(() => undefined);
    await withTimeout(clock, DISCONNECT_MS, heard, () => undefined);
    streamOf(connection).destroy();
  };
}

const streamOf = (connection: Connected): Socket =>
  ('connection' in connection ? connection.connection : connection).stream;

/** Destroys a connection, so that pending statements on it fail. */
export function destroyConnection(connection: unknown, why: string): void {
  streamOf(connection as Connected).destroy(Object.assign(new Error(why), { code: 'ECONNRESET' }));
}

// TCP keep-alive: after this idle time the kernel checks whether the peer is still there.
const KEEP_ALIVE_MS = 10_000;

/** All sockets to a database server, including those of connections that are still being opened, so that no wait for one is endless. */
export class Sockets {
  readonly #open = new Set<Socket>();

  /** Creates a socket that is not connected yet. */
  create(): Socket {
    const socket = new Socket().setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
    this.#open.add(socket);
    return socket.once('close', () => this.#open.delete(socket));
  }

  /** Destroys all sockets, so that pending statements fail. */
  destroyAll(why: string): void {
    for (const socket of this.#open) socket.destroy(Object.assign(new Error(why), { code: 'ECONNRESET' }));
  }
}
