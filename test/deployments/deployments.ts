/** The deployments on which the contract runs. */
import { type ServerKind, WITHOUT } from '../support/database-servers.js';
import { WITHOUT_NGINX } from '../support/nginx.js';
import { WITHOUT_REDIS } from '../support/redis.js';
import type { Deployment } from './system.js';

const on = (name: string, server: ServerKind | null, more: Partial<Deployment> = {}): Deployment => ({
  name,
  server,
  isBehindNginx: false,
  workers: 1,
  isCopied: false,
  ...more,
});

export const ALONE_ON_SQLITE = on('SQLite', null);

export const DEPLOYMENTS = [
  ALONE_ON_SQLITE,
  on('SQLite, with three workers', null, { workers: 3 }),
  on('PostgreSQL and Redis', 'postgres'),
  on('PostgreSQL and Redis, with two workers each', 'postgres', { workers: 2 }),
  on('MariaDB and Redis, copied from SQLite', 'mysql', { isCopied: true }),
  on('two instances behind nginx, on PostgreSQL and Redis, copied from SQLite', 'postgres', {
    isBehindNginx: true,
    isCopied: true,
  }),
];

/** Says why a row is skipped here. Where everything must be installed, it fails instead. */
export const skipReason = ({ server, isBehindNginx }: Deployment): string =>
  (server && (WITHOUT[server] || WITHOUT_REDIS)) || (isBehindNginx && WITHOUT_NGINX) || '';
