/** The instances in the database: which live, and what becomes of what dead ones held. */
import type { Neighbourhood, Standing } from '../../core/ports.js';
import { changesAfter, forgetChangesBefore } from './changes.js';
import type { Connection, Database } from './database.js';
import { type InstanceColumns, INSTANCES, type LeaseColumns } from './tables.js';

// Three heartbeats and whatever a slow machine makes of them.
const DEAD_AFTER_MS = 30_000;
/** An instance that asked for units and waits for them asks again before that. */
const WANTED_FOR_MS = 2_000;
const TOMBSTONE_MS = 24 * 3_600_000;

export class SqlNeighbourhood implements Neighbourhood {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async standing(instanceId: string, nowMs: number): Promise<Standing> {
    const since = `${this.#database.dialect.now('$nowMs')} - ${WANTED_FOR_MS}`;
    // One statement, for it is asked twice a second: a row for each token, and one at least.
    const rows = await this.#database.ask<{ seq: number; token_id: LeaseColumns['token_id'] | null }>(
      `SELECT c.seq, l.token_id FROM change_seq c
       LEFT JOIN leases l ON l.instance_id = $instanceId AND l.units > 0 AND l.wanted_at > ${since}
       WHERE c.id = 1`,
      { instanceId, nowMs },
    );
    const wanted = rows.flatMap(({ token_id: tokenId }) => tokenId ?? []);
    return { seq: rows[0]?.seq ?? 0, wanted };
  }

  changesAfter(seq: number, limit: number) {
    // As `standing`: until it is answered nothing that others changed is heard of, so it must not wait on a connection that leads nowhere.
    return changesAfter((sql, bind) => this.#database.ask(sql, bind), seq, limit);
  }

  forgetChangesBefore(timeMs: number) {
    return forgetChangesBefore(this.#database, timeMs);
  }

  async buryDead(instanceId: string, nowMs: number): Promise<number> {
    const now = this.#database.dialect.now('$nowMs');
    const dead = await this.#database.select<Pick<InstanceColumns, 'id'>>(
      `SELECT id FROM instances WHERE id <> $instanceId AND buried_at = 0 AND heartbeat_at < ${now} - ${DEAD_AFTER_MS}`,
      { instanceId, nowMs },
    );
    let buried = 0;
    for (const { id } of dead) if (await this.#database.transact((tx) => bury(tx, id, nowMs))) buried += 1;
    await this.#database.transact((tx) =>
      tx.execute(`DELETE FROM instances WHERE buried_at > 0 AND buried_at < ${now} - ${TOMBSTONE_MS}`, { nowMs }),
    );
    return buried;
  }
}

/** @returns whether it was still to be buried: it may have been heard of, and others bury too. */
async function bury(tx: Connection, instanceId: string, nowMs: number): Promise<boolean> {
  const now = tx.dialect.now('$nowMs');
  const isDead = await tx.execute(
    `UPDATE instances SET buried_at = ${now}
     WHERE id = $instanceId AND buried_at = 0 AND heartbeat_at < ${now} - ${DEAD_AFTER_MS}`,
    { instanceId, nowMs },
  );
  if (isDead === 0) return false;
  await useUp(tx, instanceId);
  return true;
}

/** Makes an instance known again, with nothing in its hands. @returns the number of its last tick. */
export async function rejoin(tx: Connection, instanceId: string, nowMs: number): Promise<number> {
  const now = tx.dialect.now('$nowMs');
  const bind = { instanceId, nowMs };
  const known = await tx.execute(
    `UPDATE instances SET buried_at = 0, heartbeat_at = ${now} WHERE id = $instanceId`,
    bind,
  );
  if (known === 0) {
    await INSTANCES.insertOf(tx, { id: '$instanceId', seq: '0', startedAtMs: now, heartbeatAtMs: now }, bind);
    return 0;
  }
  await useUp(tx, instanceId);
  const [row] = await tx.select<Pick<InstanceColumns, 'seq'>>('SELECT seq FROM instances WHERE id = $instanceId', {
    instanceId,
  });
  return row?.seq ?? 0;
}

/** Ends an instance for good. */
export async function end(tx: Connection, instanceId: string): Promise<void> {
  await useUp(tx, instanceId);
  await tx.execute('DELETE FROM instances WHERE id = $instanceId', { instanceId });
}

/** What an instance had leased and not settled may have been used, and so counts as used. */
async function useUp(tx: Connection, instanceId: string): Promise<void> {
  await tx.execute(
    `UPDATE tokens SET request_count = request_count +
       (SELECT units FROM leases WHERE leases.token_id = tokens.id AND leases.instance_id = $instanceId)
     WHERE id IN (SELECT token_id FROM leases WHERE instance_id = $instanceId)`,
    { instanceId },
    'long',
  );
  await tx.execute('DELETE FROM leases WHERE instance_id = $instanceId', { instanceId }, 'long');
}
