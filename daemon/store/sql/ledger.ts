import {
  InstanceExpired,
  type Ledger,
  StoreUnavailable,
  type LeaseGrant,
  type Tick,
  type TickReport,
  type TickRow,
} from '../../core/ports.js';
import type { Amount } from '../../core/budget/counts.js';
import type { Bind, SqlTransaction, Database } from './database.js';
import { rejoin, removeInstance, retireInstance } from './instances.js';
import { heldOfPurses, settlePurse } from './purse-leases.js';
import { type InstanceColumns, type LeaseColumns, LEASES } from './tables.js';

export interface SqlLedgerOptions {
  /** Whether other processes use this database. */
  isShared: boolean;
  /** Whether this is a worker of an instance. Default: false. */
  isWorker?: boolean;
  /** Whether it has no Redis in which it could count the limits of tokens and projects. Default: true. */
  isApart?: boolean;
}

export class SqlLedger implements Ledger {
  readonly #database: Database;
  readonly #options: SqlLedgerOptions;

  constructor(database: Database, options: SqlLedgerOptions) {
    this.#database = database;
    this.#options = options;
  }

  enrol(instanceId: string, nowMs: number): Promise<boolean> {
    return this.#database.transact(async (tx) => {
      let hasFound = false;
      if (!this.#options.isShared) {
        // This process holds the lock on the database, so every instance in it is dead.
        const dead = await tx.select<Pick<InstanceColumns, 'id'>>('SELECT id FROM instances');
        for (const { id } of dead) await removeInstance(tx, id);
        hasFound = dead.some(({ id }) => id !== instanceId);
      }
      await this.#enter(tx, instanceId, nowMs);
      return hasFound;
    });
  }

  #enter(tx: SqlTransaction, instanceId: string, nowMs: number): Promise<number> {
    const { isWorker = false, isApart = true } = this.#options;
    return rejoin(tx, instanceId, nowMs, { isWorker, isApart });
  }

  commit(tick: Tick): Promise<TickReport> {
    return this.#database.transact(async (tx) => {
      await advance(tx, tick);
      const report: TickReport = { units: new Map(), purses: new Map() };
      for (const row of tick.rows) {
        const grant = await settle(tx, tick, row);
        if (row.take > 0) report.units.set(row.tokenId, grant);
      }
      // Last, as in changes of tokens and projects, so that these cannot deadlock.
      for (const row of tick.purses) {
        const settled = await settlePurse(tx, tick, row);
        if (settled) report.purses.set(row.purseId, settled);
      }
      return report;
    });
  }

  async lastSeq(instanceId: string): Promise<number> {
    const instance = await instanceOf(this.#database, instanceId);
    if (!instance || instance.isExpired) throw expiredError();
    return instance.seq;
  }

  async held(instanceId: string, tokenIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#database.select<Pick<LeaseColumns, 'token_id' | 'units'>>(
      `SELECT token_id, units FROM ${this.#database.dialect.rowsIn('leases', 'token_id', '$tokens')}
       WHERE instance_id = $instanceId`,
      { instanceId, tokens: JSON.stringify(tokenIds) },
      'usual',
    );
    return new Map(rows.map(({ token_id: tokenId, units }) => [tokenId, units]));
  }

  heldOfPurses(instanceId: string, purseIds: readonly string[]): Promise<Map<string, Amount>> {
    return heldOfPurses(this.#database, instanceId, purseIds);
  }

  async rejoin(instanceId: string, nowMs: number): Promise<number> {
    return this.#database.transact((tx) => this.#enter(tx, instanceId, nowMs));
  }

  async retire(instanceId: string): Promise<void> {
    await this.#database.transact((tx) =>
      this.#options.isShared ? retireInstance(tx, instanceId) : removeInstance(tx, instanceId),
    );
  }
}

/** Sets the instance's last tick number. If another instance is about to expire this one, the transactions wait for each other. */
async function advance(tx: SqlTransaction, { instanceId, seq, nowMs }: Tick): Promise<void> {
  const advanced = await tx.execute(
    `UPDATE instances SET seq = $seq, heartbeat_at = ${tx.dialect.now('$nowMs')}
     WHERE id = $instanceId AND seq = $seq - 1 AND expired_at = 0`,
    { instanceId, seq, nowMs },
  );
  if (advanced === 1) return;
  const instance = await instanceOf(tx, instanceId);
  if (instance && !instance.isExpired && instance.seq === seq)
    throw new StoreUnavailable(`tick ${seq} is already committed`);
  // Or the database was restored from a backup and does not know the recent ticks.
  throw expiredError();
}

const expiredError = () => new InstanceExpired('this instance has expired: the database considers it dead');

interface InstanceRow {
  seq: number;
  isExpired: boolean;
}

async function instanceOf(on: Pick<SqlTransaction, 'select'>, instanceId: string): Promise<InstanceRow | null> {
  const [row] = await on.select<Pick<InstanceColumns, 'seq' | 'expired_at'>>(
    'SELECT seq, expired_at FROM instances WHERE id = $instanceId',
    { instanceId },
    'usual',
  );
  return row ? { seq: row.seq, isExpired: row.expired_at > 0 } : null;
}

/** Writes the used and returned units of a token, and takes the requested ones, as far as the cap allows. */
async function settle(tx: SqlTransaction, tick: Tick, row: TickRow): Promise<LeaseGrant> {
  let granted = row.take;
  let left = await settleToken(tx, row, granted);
  if (left === null) {
    // Units that other instances returned while we waited for the row lock are available now.
    granted = Math.min(row.take, await lockedRemainingOf(tx, row.tokenId));
    left = await settleToken(tx, row, granted);
  }
  if (left === null) throw new StoreUnavailable('a locked token was changed by another transaction');
  await settleLease(tx, tick.instanceId, row, granted);
  const isRefused = row.take > 0 && granted === 0;
  return { granted, left, isHeldElsewhere: isRefused && (await requestFromOthers(tx, tick, row.tokenId)) };
}

/** The statement that enforces the cap. @returns the units still available; null if the cap does not allow `take` more. */
async function settleToken(tx: SqlTransaction, row: TickRow, take: number): Promise<number | null> {
  const { tokenId, uses, hits, giveBack, lastUsedAtMs } = row;
  const update = `UPDATE tokens SET request_count = request_count + $uses, cache_hit_count = cache_hit_count + $hits,
       last_used_at = ${tx.dialect.greatest('last_used_at', '$lastUsedAtMs')}, reserved = reserved - $giveBack + $take
     WHERE id = $tokenId AND ($take = 0 OR reserved - $giveBack + $take <= max_requests)`;
  const bind = { tokenId, uses, hits, giveBack, take, lastUsedAtMs };
  const left = tx.dialect.supportsReturning
    ? await remainingReturned(tx, update, bind)
    : await remainingAfter(tx, update, bind);
  if (left === null && take === 0) throw new StoreUnavailable('a used token is missing in the database');
  return left;
}

async function remainingReturned(tx: SqlTransaction, update: string, bind: Bind): Promise<number | null> {
  const [settled] = await tx.select<Remaining>(`${update} RETURNING max_requests - reserved AS units`, bind);
  return settled ? unitsOf(settled) : null;
}

async function remainingAfter(
  tx: SqlTransaction,
  update: string,
  bind: Bind & { tokenId: string },
): Promise<number | null> {
  return (await tx.execute(update, bind)) === 0 ? null : remainingOf(tx, bind.tokenId);
}

interface Remaining {
  units: number;
}

const unitsOf = ({ units }: Remaining) => Math.max(0, units);

async function settleLease(tx: SqlTransaction, instanceId: string, row: TickRow, granted: number): Promise<void> {
  const spent = (row.leased ? row.uses : 0) + row.giveBack;
  if (spent === 0 && granted === 0) return;
  const lease = { tokenId: row.tokenId, instanceId };
  const covered = await tx.execute(
    `UPDATE leases SET units = units - $spent + $granted
     WHERE token_id = $tokenId AND instance_id = $instanceId AND units >= $spent`,
    { ...lease, spent, granted },
  );
  if (covered === 0) {
    if (spent > 0) throw new StoreUnavailable('a lease has fewer units than were drawn from it');
    await LEASES.insert(tx, { ...lease, units: granted });
  }
  // Deleting the row also clears the request of another instance for these units.
  if (row.giveBack > 0 && granted === 0) {
    await tx.execute('DELETE FROM leases WHERE token_id = $tokenId AND instance_id = $instanceId AND units = 0', lease);
  }
}

async function remainingOf(tx: SqlTransaction, tokenId: string, lock = ''): Promise<number> {
  const sql = `SELECT max_requests - reserved AS units FROM tokens WHERE id = $tokenId ${lock}`;
  const [row] = await tx.select<Remaining>(sql, { tokenId });
  return row ? unitsOf(row) : 0;
}

/** Locks the token's row, so that no other instance takes or returns units of the token: all of them first change this row. */
const lockedRemainingOf = (tx: SqlTransaction, tokenId: string) => remainingOf(tx, tokenId, tx.dialect.forUpdate);

/** Asks other instances that hold units of a token to return them. The token's row is locked. @returns whether there are any. */
async function requestFromOthers(tx: SqlTransaction, { instanceId, nowMs }: Tick, tokenId: string): Promise<boolean> {
  const asked = await tx.execute(
    `UPDATE leases SET wanted_at = ${tx.dialect.now('$nowMs')}
     WHERE token_id = $tokenId AND instance_id <> $instanceId AND units > 0`,
    { tokenId, instanceId, nowMs },
  );
  return asked > 0;
}
