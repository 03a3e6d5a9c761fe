/**
 * The back end `webhook`: posts `{"events":[…]}`, signed if there is a key.
 *
 * `Idempotency-Key` is the same whenever the same events are sent together: one event's is its id, several have a digest of theirs.
 * Who is to tell single events that come again compares their ids.
 */
import { createHash, createHmac } from 'node:crypto';
import type { CreateBackend, Delivery } from './backend.js';
import { HttpClient, verdictsOf } from '../http.js';

const MOST_BODY_BYTES = 1_000_000;
const [BEFORE, BEHIND] = ['{"events":[', ']}'];

// A second is promised; the rest of it is for what is under way.
const BATCH = { mostEvents: 100, mostBytes: MOST_BODY_BYTES - BEFORE.length - BEHIND.length, gatherMs: 250 };

export const createBackend: CreateBackend = ({ endpoint, apiKey, clock, version }) => {
  const http = new HttpClient(clock);

  return {
    batch: BATCH,
    async deliver(deliveries: readonly Delivery[], signal: AbortSignal) {
      const body = Buffer.from(`${BEFORE}${deliveries.map(({ json }) => json).join(',')}${BEHIND}`);
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
      return verdictsOf(posted, deliveries.length);
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
