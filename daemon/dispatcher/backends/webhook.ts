/**
 * The backend `webhook`: posts `{"events":[…]}`, signed if there is a key.
 *
 * `Idempotency-Key` is the same each time the same events are sent together: the ID of a single event, or a digest of several IDs. A receiver that
 * needs to recognise single repeated events compares their IDs.
 */
import { createHash, createHmac } from 'node:crypto';
import type { CreateBackend, Delivery } from './backend.js';
import { HttpClient, sameResultFor } from '../http.js';

const MAX_BODY_BYTES = 1_000_000;
const [BEFORE, AFTER] = ['{"events":[', ']}'];

// Events are promised within a second; the remaining time is for the request itself.
const BATCH = { maxEvents: 100, maxBytes: MAX_BODY_BYTES - BEFORE.length - AFTER.length, gatherMs: 250 };

export const createBackend: CreateBackend = ({ endpoint, apiKey, clock, version }) => {
  const http = new HttpClient(clock);

  return {
    batch: BATCH,
    async deliver(deliveries: readonly Delivery[], signal: AbortSignal) {
      const body = Buffer.from(`${BEFORE}${deliveries.map(({ json }) => json).join(',')}${AFTER}`);
      const headers = {
        'content-type': 'application/json',
        'user-agent': `llmp/${version}`,
        'idempotency-key': idempotencyKey(deliveries),
        ...(apiKey !== undefined && {
          authorization: `Bearer ${apiKey}`,
          'x-llmp-signature': `sha256=${createHmac('sha256', apiKey).update(body).digest('hex')}`,
        }),
      };
      const posted = await http.post({ url: endpoint, headers, body, signal });
      return sameResultFor(posted, deliveries.length);
    },
    close: () => http.close(),
  };
};

function idempotencyKey(deliveries: readonly Delivery[]): string {
  const ids = deliveries.map(({ event }) => event.id);
  const [only, ...others] = ids;
  if (only !== undefined && others.length === 0 && /^[\w-]{1,128}$/.test(only)) return only;
  return createHash('sha256').update(ids.join('\n')).digest('hex');
}
