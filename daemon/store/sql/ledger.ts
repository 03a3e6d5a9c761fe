import { type Ledger, StoreUnavailable, type TakeReport, type Tick, type TickRow } from '../../core/ports.js';
import type { Bind, Connection, Database } from './database.js';

export class SqlLedger implements Ledger {
  constructor(private readonly database: Database) {}

  async enrol(instanceId: string, nowMs: number): Promise<void> {
    await this.database.transact(async (tx) => {
      // The lock file says that no other process has this database: every instance in it is dead.
      const dead = await tx.select<{ id: string }>('SELECT id FROM instances WHERE id <> $instanceId', { instanceId });
      for (const { id } of dead) await bury(tx, id);
      await tx.execute(
        'INSERT INTO instances (id, seq, started_at, heartbeat_at) VALUES ($instanceId, 0, $nowMs, $nowMs)',
        { instanceId, nowMs },
      );
    });
  }

  commit(tick: Tick): Promise<Map<string, TakeReport>> {
    return this.database.transact(async (tx) => {
      const advanced = await tx.execute(
        'UPDATE instances SET seq = $seq, heartbeat_at = $nowMs WHERE id = $instanceId AND seq = $seq - 1',
        { instanceId: tick.instanceId, seq: tick.seq, nowMs: tick.nowMs },
      );
      if (advanced !== 1) throw new StoreUnavailable(`tick ${tick.seq} is not the next of this instance`);
      const reports = new Map<string, TakeReport>();
      for (const row of tick.rows) {
        const report = await settle(tx, tick.instanceId, row);
        if (row.take > 0) reports.set(row.tokenId, report);
      }
      return reports;
    });
  }

  async lastSeq(instanceId: string): Promise<number> {
    const [row] = await this.database.select<{ seq: number | string }>(
      'SELECT seq FROM instances WHERE id = $instanceId',
      { instanceId },
    );
    if (!row) throw new StoreUnavailable('this instance is not enrolled');
    return Number(row.seq);
  }

  async retire(instanceId: string): Promise<void> {
    await this.database.transact((tx) => bury(tx, instanceId));
  }
}

/** Ends an instance: what it had leased and not settled may have been used, and so counts as used. */
async function bury(tx: Connection, instanceId: string): Promise<void> {
  await tx.execute(
    `UPDATE tokens SET request_count = request_count +
       (SELECT units FROM leases WHERE leases.token_id = tokens.id AND leases.instance_id = $instanceId)
     WHERE id IN (SELECT token_id FROM leases WHERE instance_id = $instanceId)`,
    { instanceId },
  );
  await tx.execute('DELETE FROM leases WHERE instance_id = $instanceId', { instanceId });
  await tx.execute('DELETE FROM instances WHERE id = $instanceId', { instanceId });
}

/** Writes what was used and given back, and takes what is asked for, or as much of it as the cap still allows. */
async function settle(tx: Connection, instanceId: string, row: TickRow): Promise<TakeReport> {
  let granted = row.take;
  let left = await settleToken(tx, row, granted);
  while (left === null) {
    granted = Math.max(0, Math.min(granted - 1, await leftOf(tx, row.tokenId)));
    left = await settleToken(tx, row, granted);
  }
  await settleLease(tx, instanceId, row, granted);
  return { granted, left };
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
  units: number | string;
}

const unitsOf = ({ units }: Left) => Math.max(0, Number(units));

async function settleLease(tx: Connection, instanceId: string, row: TickRow, granted: number): Promise<void> {
  const spent = (row.leased ? row.uses : 0) + row.giveBack;
  if (spent === 0 && granted === 0) return;
  const lease = { tokenId: row.tokenId, instanceId };
  const covered = await tx.execute(
    `UPDATE leases SET units = units - $spent + $granted
     WHERE token_id = $tokenId AND instance_id = $instanceId AND units >= $spent`,
    { ...lease, spent, granted },
  );
  if (covered === 1) return;
  if (spent > 0) throw new StoreUnavailable('a lease does not cover what was drawn from it');
  await tx.execute('INSERT INTO leases (token_id, instance_id, units) VALUES ($tokenId, $instanceId, $granted)', {
    ...lease,
    granted,
  });
}

async function leftOf(tx: Connection, tokenId: string): Promise<number> {
  const [row] = await tx.select<Left>('SELECT max_requests - reserved AS units FROM tokens WHERE id = $tokenId', {
    tokenId,
  });
  return row ? unitsOf(row) : 0;
}
