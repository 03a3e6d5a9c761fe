/** The instances in the database: which of them are alive, and what happens to the leases of dead ones. */
import { KNOWN_WITHIN_MS } from '../../core/limit-shares.js';
import { IN_WINDOW_MS } from '../../core/limit-windows.js';
import type { ClusterState, ClusterStore, CommittedChange } from '../../core/ports.js';
import type { Database, SqlTransaction } from './database.js';
import { forfeitPurses } from './purse-leases.js';
import { CHANGE, type ChangeColumns, type InstanceColumns, INSTANCES, type LeaseColumns } from './tables.js';

// Three heartbeats, with a margin for a slow machine.
const DEAD_AFTER_MS = 30_000;
/** An instance that still waits for units asks again within this time. */
const WANTED_FOR_MS = 2_000;
/** A worker has its part of the limits through its primary. */
const LIVE = 'expired_at = 0 AND is_worker = 0';
const OTHERS_APART = 'id <> $instanceId AND is_apart = 1 AND is_worker = 0';
/** For so long, what an instance has admitted counts. */
const APART_FOR_MS = KNOWN_WITHIN_MS + IN_WINDOW_MS;
const EXPIRED_ROW_MS = 24 * 3_600_000;

export class SqlClusterStore implements ClusterStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async poll(instanceId: string, nowMs: number): Promise<ClusterState> {
    const now = this.#database.dialect.now('$nowMs');
    const since = `${now} - ${WANTED_FOR_MS}`;
    const apart = `${OTHERS_APART} AND (expired_at = 0 OR expired_at > ${now} - ${APART_FOR_MS})`;
    // A single statement, because it runs twice a second: one row for each wanted token, and at least one.
    const rows = await this.#database.prioritySelect<{
      seq: number;
      wanted: LeaseColumns['token_id'] | null;
      live: number;
      first: string | null;
      is_live: number;
      apart: number;
      first_apart: string | null;
    }>(
      `SELECT c.seq, l.id AS wanted,
         (SELECT COUNT(*) FROM instances WHERE ${LIVE}) AS live, (SELECT MIN(id) FROM instances WHERE ${LIVE}) AS first,
         (SELECT COUNT(*) FROM instances WHERE ${LIVE} AND id = $instanceId) AS is_live,
         (SELECT COUNT(*) FROM instances WHERE ${apart}) AS apart,
         (SELECT MIN(id) FROM instances WHERE ${apart}) AS first_apart
       FROM change_seq c
       LEFT JOIN (
         SELECT token_id AS id FROM leases WHERE instance_id = $instanceId AND units > 0 AND wanted_at > ${since}
         UNION SELECT purse_id FROM purse_leases WHERE instance_id = $instanceId AND (nano > 0 OR tokens > 0) AND wanted_at > ${since}
       ) l ON 1 = 1
       WHERE c.id = 1`,
      { instanceId, nowMs },
    );
    const wanted = rows.flatMap(({ wanted: id }) => id ?? []);
    const [row] = rows;
    const { live = 0, first = null, is_live: isLive = 0, first_apart: firstApart = null } = row ?? {};
    const isFirstApart = firstApart !== null && (first === null || firstApart <= first);
    const peers = {
      live,
      isFirst: first === instanceId,
      isLive: isLive > 0,
      apart: row?.apart ?? 0,
      isFirstApart,
    };
    return { seq: rows[0]?.seq ?? 0, wanted, peers };
  }

  /** Changes that other instances must learn about: one row per change, under the sequence number of its audit record. */
  async changesAfter(seq: number, limit: number): Promise<CommittedChange[]> {
    // On the priority connection, as `poll`: until it returns, this instance learns of no changes, so it must not wait on a
    // dead connection.
    const rows = await this.#database.prioritySelect<ChangeColumns>(
      `SELECT ${CHANGE.list} FROM changes WHERE seq > $seq ORDER BY seq LIMIT ${limit}`,
      { seq },
    );
    return rows.map(CHANGE.of);
  }

  async deleteChangesBefore(timeMs: number): Promise<void> {
    await this.#database.transact((tx) =>
      tx.execute('DELETE FROM changes WHERE changed_at < $timeMs', { timeMs }, 'long'),
    );
  }

  async markApart(instanceId: string, isApart: boolean): Promise<void> {
    await this.#database.transact((tx) =>
      tx.execute('UPDATE instances SET is_apart = $isApart WHERE id = $instanceId', {
        instanceId,
        isApart: Number(isApart),
      }),
    );
  }

  async expireDead(instanceId: string, nowMs: number): Promise<number> {
    const now = this.#database.dialect.now('$nowMs');
    const dead = await this.#database.select<Pick<InstanceColumns, 'id'>>(
      `SELECT id FROM instances WHERE id <> $instanceId AND expired_at = 0 AND heartbeat_at < ${now} - ${DEAD_AFTER_MS}`,
      { instanceId, nowMs },
    );
    let expired = 0;
    for (const { id } of dead) if (await this.#database.transact((tx) => expire(tx, id, nowMs))) expired += 1;
    await this.#database.transact((tx) =>
      tx.execute(`DELETE FROM instances WHERE expired_at > 0 AND expired_at < ${now} - ${EXPIRED_ROW_MS}`, { nowMs }),
    );
    return expired;
  }
}

/** @returns false if the instance has sent a heartbeat since, or another instance has expired it already. */
async function expire(tx: SqlTransaction, instanceId: string, nowMs: number): Promise<boolean> {
  const now = tx.dialect.now('$nowMs');
  const isDead = await tx.execute(
    `UPDATE instances SET expired_at = ${now}
     WHERE id = $instanceId AND expired_at = 0 AND heartbeat_at < ${now} - ${DEAD_AFTER_MS}`,
    { instanceId, nowMs },
  );
  if (isDead === 0) return false;
  await forfeitLeases(tx, instanceId, (await lockedInstance(tx, instanceId)) ?? nowMs);
  return true;
}

/** Registers an instance (again), without any leases. @returns the number of its last tick. */
export async function rejoin(
  tx: SqlTransaction,
  instanceId: string,
  nowMs: number,
  { isWorker, isApart }: { isWorker: boolean; isApart: boolean },
): Promise<number> {
  const now = tx.dialect.now('$nowMs');
  const bind = { instanceId, nowMs, isWorker: Number(isWorker), isApart: Number(isApart) };
  const seenAtMs = await lockedInstance(tx, instanceId);
  const known = await tx.execute(`UPDATE instances SET expired_at = 0, heartbeat_at = ${now} WHERE id = $instanceId`, {
    instanceId,
    nowMs,
  });
  if (known === 0) {
    await INSTANCES.insertOf(
      tx,
      { id: '$instanceId', seq: '0', startedAtMs: now, heartbeatAtMs: now, isWorker: '$isWorker', isApart: '$isApart' },
      bind,
    );
    return 0;
  }
  await forfeitLeases(tx, instanceId, seenAtMs ?? nowMs);
  const [row] = await tx.select<Pick<InstanceColumns, 'seq'>>('SELECT seq FROM instances WHERE id = $instanceId', {
    instanceId,
  });
  return row?.seq ?? 0;
}

/** Removes an instance permanently. */
export async function removeInstance(tx: SqlTransaction, instanceId: string): Promise<void> {
  await forfeitLast(tx, instanceId);
  await tx.execute('DELETE FROM instances WHERE id = $instanceId', { instanceId });
}

/** The same, but others must know for a while of one that counted limits apart from Redis. */
export async function retireInstance(tx: SqlTransaction, instanceId: string): Promise<void> {
  await forfeitLast(tx, instanceId);
  await tx.execute('DELETE FROM instances WHERE id = $instanceId AND (is_apart = 0 OR is_worker = 1)', { instanceId });
  // The time of a server, which any instance is on that has others.
  await tx.execute(`UPDATE instances SET expired_at = ${tx.dialect.now('heartbeat_at')} WHERE id = $instanceId`, {
    instanceId,
  });
}

/**
 * Locks the row of an instance: a tick of it has been committed, with what it leased, or will find that the instance is gone. @returns when it
 * was last seen; null if it does not exist.
 */
async function lockedInstance(tx: SqlTransaction, instanceId: string): Promise<number | null> {
  const [row] = await tx.select<Pick<InstanceColumns, 'heartbeat_at'>>(
    `SELECT heartbeat_at FROM instances WHERE id = $instanceId ${tx.dialect.forUpdate}`,
    { instanceId },
  );
  return row?.heartbeat_at ?? null;
}

/** Before an instance is removed. */
async function forfeitLast(tx: SqlTransaction, instanceId: string): Promise<void> {
  const seenAtMs = await lockedInstance(tx, instanceId);
  await forfeitLeases(tx, instanceId, seenAtMs ?? 0);
}

/** Units that an instance had leased but not settled may have been used, so they count as used. */
async function forfeitLeases(tx: SqlTransaction, instanceId: string, seenAtMs: number): Promise<void> {
  await tx.execute(
    `UPDATE tokens SET request_count = request_count +
       (SELECT units FROM leases WHERE leases.token_id = tokens.id AND leases.instance_id = $instanceId)
     WHERE id IN (SELECT token_id FROM leases WHERE instance_id = $instanceId)`,
    { instanceId },
    'long',
  );
  await tx.execute('DELETE FROM leases WHERE instance_id = $instanceId', { instanceId }, 'long');
  await forfeitPurses(tx, instanceId, seenAtMs);
}
