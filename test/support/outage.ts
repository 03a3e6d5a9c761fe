import { ConnectionError } from 'sequelize';
import type { TestDaemon } from './daemon.js';

interface ConnectionManager {
  getConnection: (options: unknown) => Promise<unknown>;
}

export interface Outage {
  /** How often somebody tried to reach the database. */
  attempts: number;
  end(): void;
}

const refused = () => Promise.reject(new ConnectionError(new Error('the database is away')));

/**
 * Makes the database unreachable, as its driver would report it.
 *
 * @param connecting what happens to those who try; `reach` is what would have happened.
 */
export function takeDatabaseAway(
  { daemon }: TestDaemon,
  connecting: (reach: () => Promise<unknown>) => Promise<unknown> = refused,
): Outage {
  const { connectionManager } = daemon.stores.database.sequelize as unknown as { connectionManager: ConnectionManager };
  const shipped = connectionManager.getConnection;
  const outage: Outage = {
    attempts: 0,
    end: () => {
      connectionManager.getConnection = shipped;
    },
  };
  connectionManager.getConnection = (options) => {
    outage.attempts += 1;
    return connecting(() => shipped.call(connectionManager, options));
  };
  return outage;
}
