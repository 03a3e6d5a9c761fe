/** The deployments on which the contract runs. */
import { type ServerKind, WITHOUT } from '../support/database-servers.js';
import { WITHOUT_NGINX } from '../support/nginx.js';
import { WITHOUT_REDIS } from '../support/redis.js';
import type { Deployment } from './system.js';

const on = (name: string, server: ServerKind | null, isBehindNginx = false, workers = 1): Deployment => ({
  name,
  server,
  isBehindNginx,
  workers,
});

export const DEPLOYMENTS = [
  on('SQLite', null),
  on('SQLite, with three workers', null, false, 3),
  on('PostgreSQL and Redis', 'postgres'),
  on('PostgreSQL and Redis, with two workers each', 'postgres', false, 2),
  on('MariaDB and Redis', 'mysql'),
  on('two instances behind nginx, on PostgreSQL and Redis', 'postgres', true),
];

/** Says why a row is skipped here. Where everything must be installed, it fails instead. */
export const skipReason = ({ server, isBehindNginx }: Deployment): string =>
  (server && (WITHOUT[server] || WITHOUT_REDIS)) || (isBehindNginx && WITHOUT_NGINX) || '';
