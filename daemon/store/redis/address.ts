import type { Settings } from '../../../config/settings.js';

export interface RedisAddress {
  /** A host name, an IPv4 address, or an IPv6 address without brackets. */
  host: string;
  port: number;
  database: number;
  username: string | undefined;
  password: string | undefined;
  isEncrypted: boolean;
}

export type RedisSettings = Pick<
  Settings,
  'redisAddress' | 'redisDatabase' | 'redisUsername' | 'redisPassword' | 'redisTls'
>;

/** Address of Redis from the settings; null when Redis is not configured. */
export function redisAddressFrom(settings: RedisSettings): RedisAddress | null {
  const { redisAddress, redisDatabase, redisUsername, redisPassword, redisTls } = settings;
  if (!redisAddress) return null;
  return {
    ...redisAddress,
    database: redisDatabase,
    username: redisUsername,
    password: redisPassword,
    isEncrypted: redisTls,
  };
}
