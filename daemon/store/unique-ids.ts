import { randomFillSync } from 'node:crypto';

const BYTES_EACH = 10;
const POOLED = 1_000;
const VARIANTS = '89ab';

const pool = Buffer.allocUnsafe(POOLED * BYTES_EACH);
let used = pool.length;

/**
 * Returns a UUIDv7 (RFC 9562, section 5.7). Random bytes are drawn in bulk: one system call per ID would cost more than the rest of
 * an event.
 */
export function uniqueId(timeMs: number): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.toString('hex', used, used + BYTES_EACH);
  used += BYTES_EACH;
  const time = timeMs.toString(16).padStart(12, '0');
  const variant = VARIANTS.charAt(Number.parseInt(random.charAt(3), 16) & 3);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`;
}
