import type { Settings } from '../../../config/settings.js';

export interface RedisAddress {
  /** A name, an IPv4 address, or an IPv6 one without brackets. */
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

/** Where Redis is; null when there is to be none. */
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
