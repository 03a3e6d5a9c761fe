/** The headers of a message without those that every message of its kind has, and a check of the latter. */
import { expect } from 'chai';
import type { RawResponse } from '../../support/raw.js';
import type { FaultFixture } from './fault-fixture.js';
import type { Exchange } from './upstream.js';

export type FieldList = readonly (readonly [name: string, value: string])[];

/** The headers of an upstream request without those that every request has. Checks that each of the latter appears once, with our value. */
export function extraRequestHeaders(stage: FaultFixture, exchange: Exchange): FieldList {
  const once: Record<string, RegExp | string> = {
    host: stage.upstreamHost,
    connection: 'keep-alive',
    authorization: `Bearer ${stage.upstreamKey}`,
    'x-request-id': /^[\w-]{1,64}$/,
    'cdn-loop': /^(?:[\w-]+, )*llmp-[0-9a-f]{8}$/,
  };
  return beside(exchange.request.fields, once);
}

/** The headers of a response without those that every forwarded response has. */
export function extraResponseHeaders(stage: FaultFixture, answer: RawResponse): FieldList {
  const once: Record<string, RegExp | string> = {
    'x-proxy-cache': 'miss',
    'x-request-id': /^[\w-]{1,64}$/,
    vary: /(?:^|, )Authorization, x-api-key, api-key, x-goog-api-key, xi-api-key$/,
    'server-timing': /^upstream;dur=[\d.]+, proxy;dur=[\d.]+$/,
    'x-token-expires-at': stage.token.expires_at,
    date: /GMT$/,
    connection: /^(?:keep-alive|close)$/,
  };
  return beside(answer.fields, once).filter(([name, value]) => name !== 'Keep-Alive' || value !== 'timeout=75');
}

function beside(fields: FieldList, once: Record<string, RegExp | string>): FieldList {
  for (const [name, expected] of Object.entries(once)) {
    const values = fields.filter(([given]) => given.toLowerCase() === name).map(([, value]) => value);
    expect(values, name).to.have.lengthOf(1);
    if (typeof expected === 'string') expect(values[0], name).to.equal(expected);
    else expect(values[0], name).to.match(expected);
  }
  return fields.filter(([name]) => !(name.toLowerCase() in once));
}
