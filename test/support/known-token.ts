import { createHash } from 'node:crypto';
import type { KnownToken } from '../../daemon/core/ports.js';

/** What the database would say of an unlimited token. */
export const knownToken = (digest: string): KnownToken => ({
  token: {
    id: createHash('md5').update(digest).digest('hex'),
    projectId: 'one',
    name: null,
    isActive: true,
    expiresAtMs: Infinity,
    maxRequests: 0,
    requestCount: 0,
    cacheHitCount: 0,
    createdAtMs: 0,
    lastUsedAtMs: null,
    obfuscated: 'sk-wt-0000…0000',
  },
  reserved: 0,
  projectIsActive: true,
  upstreamKey: `upstream-${digest.slice(0, 4)}`,
  changeSeq: 0,
});
