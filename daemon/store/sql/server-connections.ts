/** How connections to PostgreSQL and MySQL are made and ended. */
import type { Socket } from 'node:net';
import { BaseError, ConnectionError, type Options, Sequelize, Transaction } from 'sequelize';
import type { DatabaseServerAddress } from '../../../config/database-url.js';
import { inTime } from '../../core/in-time.js';
import type { Clock } from '../../core/ports.js';
import { type PostgresTypes, readMysqlNumber, readPostgresNumbers } from './numbers.js';
import type { Sockets } from './sockets.js';

const IDLE_MS = 20_000;
const FAREWELL_MS = 1_000;
const LOCK_S = 5;
// A report over a year takes long; whoever waits for less than that gives up by itself.
const STATEMENT_S = 30;
// The server's limit for a connection that is not used: longer than one is kept here. All there is on MySQL in place of the above.
const UNUSED_S = 40;

// Nothing is cut to fit, or becomes another value, without an error.
const MYSQL_SESSION = `SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = ${LOCK_S}`;
// Some are MariaDB's, some are MySQL's.
const mysqlLimits = (pauseMs: number) => [
  `SET SESSION max_statement_time = ${STATEMENT_S}`,
  `SET SESSION max_execution_time = ${STATEMENT_S * 1000}`,
  `SET SESSION idle_transaction_timeout = ${Math.ceil(pauseMs / 1000)}`,
  `SET SESSION wait_timeout = ${UNUSED_S}`,
];

export interface Connecting {
  server: DatabaseServerAddress;
  /** PEM, to be believed in place of the system's; null: those are. */
  certificates: string | null;
  sockets: Sockets;
  clock: Pick<Clock, 'after'>;
  /** Called for each statement. */
  onStatement: () => void;
  /** After which the server ends a transaction in which nothing happens. */
  pauseMs: number;
}

/** @param limitMs how long it may take to get a free connection, or to make one. */
export function poolOf(connecting: Connecting, size: number, limitMs: number): Sequelize {
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
    // Otherwise it would be asked for over a connection beside the pool, which no limit holds for. All that we run on have more.
    databaseVersion: isPostgres ? '12.0.0' : '8.0.0',
    pool: { max: size, min: 0, acquire: limitMs, idle: IDLE_MS },
    // What was read before a lock was waited for must not be read again afterwards.
    isolationLevel: Transaction.ISOLATION_LEVELS.READ_COMMITTED,
    timezone: '+00:00',
    dialectOptions: isPostgres ? postgresOptions(connecting, limitMs) : mysqlOptions(connecting, limitMs),
    // Only counted: a statement's text would bring bind values into a log.
    logging: onStatement,
  } as Options);
  sequelize.addHook('afterConnect', isPostgres ? setUpPostgres : (opened) => setUpMysql(opened, connecting.pauseMs));
  catchEarlyErrors(sequelize.connectionManager);
  boundFarewells(sequelize.connectionManager, clock);
  return sequelize;
}

function postgresOptions({ sockets, ...connecting }: Connecting, limitMs: number) {
  return {
    application_name: 'llmp',
    connectionTimeoutMillis: limitMs,
    statement_timeout: STATEMENT_S * 1000,
    lock_timeout: LOCK_S * 1000,
    idle_in_transaction_session_timeout: connecting.pauseMs,
    stream: () => sockets.create(),
    ...tlsOptions(connecting),
  };
}

function mysqlOptions({ sockets, ...connecting }: Connecting, limitMs: number) {
  const { host, port, socket } = connecting.server;
  return {
    connectTimeout: limitMs,
    charset: 'utf8mb4',
    // An UPDATE says how many rows it found, as everywhere else, and not how many then looked different.
    flags: ['FOUND_ROWS'],
    // In place of Sequelize's, which is for dates: there are none in the tables.
    typeCast: readMysqlNumber,
    stream: () => (socket === null ? sockets.create().connect(port, host) : sockets.create().connect(socket)),
    ...(socket !== null && { socketPath: socket }),
    ...tlsOptions(connecting),
  };
}

/** `verifyIdentity` is mysql2's; pg looks at the name whenever it looks at the certificate. */
function tlsOptions({ server: { tls }, certificates }: Pick<Connecting, 'server' | 'certificates'>) {
  if (tls === 'disable') return {};
  if (tls === 'require') return { ssl: { rejectUnauthorized: false } };
  return {
    ssl: { rejectUnauthorized: true, verifyIdentity: true, ...(certificates !== null && { ca: certificates }) },
  };
}

function setUpPostgres(opened: unknown): void {
  readPostgresNumbers(opened as PostgresTypes);
}

/** As much of the driver's connection as is needed before anybody else may use it. */
interface MysqlConnection {
  query(sql: string, done: (error: Error | null) => void): void;
  destroy(): void;
}

async function setUpMysql(opened: unknown, pauseMs: number): Promise<void> {
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
    connection.destroy(); // No pool knows it yet.
    throw error;
  }
  for (const sql of mysqlLimits(pauseMs)) await run(sql).catch(() => undefined);
}

interface Listening {
  on(event: 'error', listener: () => void): this;
}

/** As much of Sequelize's connection managers as is changed here: one of them uses `Client`, the other `createConnection`. */
interface Connector {
  lib: { Client?: new (config: unknown) => Listening; createConnection?: (config: unknown) => Listening };
  connect(config: unknown): Promise<unknown>;
}

/**
 * Sequelize listens to a connection a moment after the driver has made it. An error that arrives with the last bytes of the handshake,
 * from a server that is being stopped, would have no listener and end the process. With one, the connection's first query fails instead.
 */
function catchEarlyErrors(connectionManager: unknown): void {
  const manager = connectionManager as Connector;
  const { lib } = manager;
  const listened = <T extends Listening>(connection: T): T => connection.on('error', () => undefined);
  const { Client, createConnection } = lib;
  const replaced = {
    ...(Client && {
      Client: function (config: unknown) {
        return listened(new Client(config));
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

/** pg has the socket, with TLS if there is any, one deeper. */
type Connected = { connection: { stream: Socket } } | { stream: Socket };

/**
 * The drivers take leave of a server, and wait until it has heard that: of one that stands still for ever. Of one that is gone already
 * their failure to do so would be nobody's to catch, and end the process.
 */
function boundFarewells(connectionManager: unknown, clock: Pick<Clock, 'after'>): void {
  const manager = connectionManager as { disconnect(connection: Connected): Promise<void> };
  const disconnect = manager.disconnect.bind(manager);
  manager.disconnect = async (connection) => {
    const heard = disconnect(connection).catch(() => undefined);
    await inTime(clock, FAREWELL_MS, heard, () => undefined);
    streamOf(connection).destroy();
  };
}

const streamOf = (connection: Connected): Socket =>
  ('connection' in connection ? connection.connection : connection).stream;

/** Whoever waits for an answer over a connection is told that none will come. */
export function giveUp(connection: unknown, why: string): void {
  streamOf(connection as Connected).destroy(Object.assign(new Error(why), { code: 'ECONNRESET' }));
}
