/**
 * The back end `webhook`: posts `{"events":[…]}`, signed if there is a key.
 *
 * `Idempotency-Key` is the same whenever the same events are sent together: one event's is its id, several have a digest of theirs.
 * Who is to tell single events that come again compares their ids.
 */
import { createHash, createHmac } from 'node:crypto';
import type { Backend, Delivery, Verdict } from './backend.js';
import type { BackendOptions } from './registry.js';
import { HttpClient, verdictsOf } from '../http.js';

const MOST_BODY_BYTES = 1_000_000;
const [BEFORE, BEHIND] = ['{"events":[', ']}'];

export class WebhookBackend implements Backend {
  // A second is promised; the rest of it is for what is under way.
  readonly batch = { mostEvents: 100, mostBytes: MOST_BODY_BYTES - BEFORE.length - BEHIND.length, gatherMs: 250 };
  readonly #endpoint: string;
  readonly #apiKey: string | undefined;
  readonly #version: string;
  readonly #http: HttpClient;

  constructor({ endpoint, apiKey, clock, version }: BackendOptions) {
    this.#endpoint = endpoint;
    this.#apiKey = apiKey;
    this.#version = version;
    this.#http = new HttpClient(clock);
  }

  async deliver(deliveries: readonly Delivery[], signal: AbortSignal): Promise<Verdict[]> {
    const body = Buffer.from(`${BEFORE}${deliveries.map(({ json }) => json).join(',')}${BEHIND}`);
    const headers = {
      'content-type': 'application/json',
      'user-agent': `llmp/${this.#version}`,
      'idempotency-key': idempotencyKey(deliveries),
      ...(this.#apiKey !== undefined && {
        authorization: `Bearer ${this.#apiKey}`,
        'x-llmp-signature': `sha256=${createHmac('sha256', this.#apiKey).update(body).digest('hex')}`,
      }),
    };
    const posted = await this.#http.post({ url: this.#endpoint, headers, body, signal });
    return verdictsOf(posted, deliveries.length);
  }

  close(): Promise<void> {
    return this.#http.close();
  }
}

function idempotencyKey(deliveries: readonly Delivery[]): string {
  const ids = deliveries.map(({ event }) => event.id);
  const [only, ...others] = ids;
  if (only !== undefined && others.length === 0 && /^[\w-]{1,128}$/.test(only)) return only;
  return createHash('sha256').update(ids.join('\n')).digest('hex');
}
