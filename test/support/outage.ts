import { ConnectionError } from 'sequelize';
import type { TestDaemon } from './daemon.js';

/**
 * Makes the database unreachable, as its driver would report it.
 *
 * @returns brings it back.
 */
export function takeDatabaseAway({ daemon }: TestDaemon): () => void {
  const manager = (daemon.stores.database.sequelize as unknown as { connectionManager: { getConnection: unknown } })
    .connectionManager;
  const getConnection = manager.getConnection;
  manager.getConnection = () => Promise.reject(new ConnectionError(new Error('the database is away')));
  return () => {
    manager.getConnection = getConnection;
  };
}
