import {
  InstanceBuried,
  type Ledger,
  StoreUnavailable,
  type TakeReport,
  type Tick,
  type TickRow,
} from '../../core/ports.js';
import type { Bind, Connection, Database } from './database.js';
import { end, rejoin } from './instances.js';
import { type InstanceColumns, type LeaseColumns, LEASES } from './tables.js';

export interface SqlLedgerOptions {
  /** Whether other processes use this database too. */
  isShared: boolean;
}

export class SqlLedger implements Ledger {
  readonly #database: Database;
  readonly #options: SqlLedgerOptions;

  constructor(database: Database, options: SqlLedgerOptions) {
    this.#database = database;
    this.#options = options;
  }

  async enrol(instanceId: string, nowMs: number): Promise<void> {
    await this.#database.transact(async (tx) => {
      if (!this.#options.isShared) {
        // The lock file says that no other process has this database: every instance in it is dead.
        const dead = await tx.select<Pick<InstanceColumns, 'id'>>('SELECT id FROM instances');
        for (const { id } of dead) await end(tx, id);
      }
      await rejoin(tx, instanceId, nowMs);
    });
  }

  commit(tick: Tick): Promise<Map<string, TakeReport>> {
    return this.#database.transact(async (tx) => {
      await advance(tx, tick);
      const reports = new Map<string, TakeReport>();
      for (const row of tick.rows) {
        const report = await settle(tx, tick, row);
        if (row.take > 0) reports.set(row.tokenId, report);
      }
      return reports;
    });
  }

  async lastSeq(instanceId: string): Promise<number> {
    const instance = await instanceOf(this.#database, instanceId);
    if (!instance || instance.isBuried) throw buriedAlive();
    return instance.seq;
  }

  async held(instanceId: string, tokenIds: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#database.select<Pick<LeaseColumns, 'token_id' | 'units'>>(
      `SELECT token_id, units FROM ${this.#database.dialect.among('leases', 'token_id', '$tokens')}
       WHERE instance_id = $instanceId`,
      { instanceId, tokens: JSON.stringify(tokenIds) },
      'usual',
    );
    return new Map(rows.map(({ token_id: tokenId, units }) => [tokenId, units]));
  }

  async rejoin(instanceId: string, nowMs: number): Promise<number> {
    return this.#database.transact((tx) => rejoin(tx, instanceId, nowMs));
  }

  async retire(instanceId: string): Promise<void> {
    await this.#database.transact((tx) => end(tx, instanceId));
  }
}

/** Makes the tick's number the instance's last. Whoever buries it waits for this transaction, or this one for them. */
async function advance(tx: Connection, { instanceId, seq, nowMs }: Tick): Promise<void> {
  const advanced = await tx.execute(
    `UPDATE instances SET seq = $seq, heartbeat_at = ${tx.dialect.now('$nowMs')}
     WHERE id = $instanceId AND seq = $seq - 1 AND buried_at = 0`,
    { instanceId, seq, nowMs },
  );
  if (advanced === 1) return;
  const instance = await instanceOf(tx, instanceId);
  if (instance && !instance.isBuried && instance.seq === seq) throw new StoreUnavailable(`tick ${seq} is committed`);
  // Or the database was put back to an earlier day: it knows nothing of what has been since.
  throw buriedAlive();
}

const buriedAlive = () => new InstanceBuried('the database takes this instance for dead');

interface InstanceRow {
  seq: number;
  isBuried: boolean;
}

async function instanceOf(on: Pick<Connection, 'select'>, instanceId: string): Promise<InstanceRow | null> {
  const [row] = await on.select<Pick<InstanceColumns, 'seq' | 'buried_at'>>(
    'SELECT seq, buried_at FROM instances WHERE id = $instanceId',
    { instanceId },
    'usual',
  );
  return row ? { seq: row.seq, isBuried: row.buried_at > 0 } : null;
}

/** Writes what was used and given back, and takes what is asked for, or as much of it as the cap still allows. */
async function settle(tx: Connection, tick: Tick, row: TickRow): Promise<TakeReport> {
  let granted = row.take;
  let left = await settleToken(tx, row, granted);
  if (left === null) {
    // What others gave back while the row was waited for is there to be taken.
    granted = Math.min(row.take, await lockedLeftOf(tx, row.tokenId));
    left = await settleToken(tx, row, granted);
  }
  if (left === null) throw new StoreUnavailable('a token that is locked was changed all the same');
  await settleLease(tx, tick.instanceId, row, granted);
  const isRefused = row.take > 0 && granted === 0;
  return { granted, left, isHeldElsewhere: isRefused && (await askOthers(tx, tick, row.tokenId)) };
}

/** The one statement on which the cap hangs. @returns the units still left; null when the cap has no room for `take` more. */
async function settleToken(tx: Connection, row: TickRow, take: number): Promise<number | null> {
  const { tokenId, uses, hits, giveBack, lastUsedAtMs } = row;
  const update = `UPDATE tokens SET request_count = request_count + $uses, cache_hit_count = cache_hit_count + $hits,
       last_used_at = ${tx.dialect.greatest('last_used_at', '$lastUsedAtMs')}, reserved = reserved - $giveBack + $take
     WHERE id = $tokenId AND ($take = 0 OR reserved - $giveBack + $take <= max_requests)`;
  const bind = { tokenId, uses, hits, giveBack, take, lastUsedAtMs };
  const left = tx.dialect.returns ? await leftBy(tx, update, bind) : await leftAfter(tx, update, bind);
  if (left === null && take === 0) throw new StoreUnavailable('a token that was used is not in the database');
  return left;
}

async function leftBy(tx: Connection, update: string, bind: Bind): Promise<number | null> {
  const [settled] = await tx.select<Left>(`${update} RETURNING max_requests - reserved AS units`, bind);
  return settled ? unitsOf(settled) : null;
}

async function leftAfter(tx: Connection, update: string, bind: Bind & { tokenId: string }): Promise<number | null> {
  return (await tx.execute(update, bind)) === 0 ? null : leftOf(tx, bind.tokenId);
}

interface Left {
  units: number;
}

const unitsOf = ({ units }: Left) => Math.max(0, units);

async function settleLease(tx: Connection, instanceId: string, row: TickRow, granted: number): Promise<void> {
  const spent = (row.leased ? row.uses : 0) + row.giveBack;
  if (spent === 0 && granted === 0) return;
  const lease = { tokenId: row.tokenId, instanceId };
  const covered = await tx.execute(
    `UPDATE leases SET units = units - $spent + $granted
     WHERE token_id = $tokenId AND instance_id = $instanceId AND units >= $spent`,
    { ...lease, spent, granted },
  );
  if (covered === 0) {
    if (spent > 0) throw new StoreUnavailable('a lease does not cover what was drawn from it');
    await LEASES.insert(tx, { ...lease, units: granted });
  }
  // With it goes that another instance asked for it.
  if (row.giveBack > 0 && granted === 0) {
    await tx.execute('DELETE FROM leases WHERE token_id = $tokenId AND instance_id = $instanceId AND units = 0', lease);
  }
}

async function leftOf(tx: Connection, tokenId: string, lock = ''): Promise<number> {
  const sql = `SELECT max_requests - reserved AS units FROM tokens WHERE id = $tokenId ${lock}`;
  const [row] = await tx.select<Left>(sql, { tokenId });
  return row ? unitsOf(row) : 0;
}

/** From here on nobody else takes or gives back units of the token: all do that behind a change of its row. */
const lockedLeftOf = (tx: Connection, tokenId: string) => leftOf(tx, tokenId, tx.dialect.forUpdate);

/** Asks the other instances that hold units of a token for them. @returns whether there are any. The token's row is locked. */
async function askOthers(tx: Connection, { instanceId, nowMs }: Tick, tokenId: string): Promise<boolean> {
  const asked = await tx.execute(
    `UPDATE leases SET wanted_at = ${tx.dialect.now('$nowMs')}
     WHERE token_id = $tokenId AND instance_id <> $instanceId AND units > 0`,
    { tokenId, instanceId, nowMs },
  );
  return asked > 0;
}
