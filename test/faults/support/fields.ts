/** The fields of a message beside the ones that every message of its kind carries, and a check of those. */
import { expect } from 'chai';
import type { RawAnswer } from '../../support/raw.js';
import type { Stage } from './stage.js';
import type { Exchange } from './upstream.js';

export type FieldList = readonly (readonly [name: string, value: string])[];

/** What the upstream was sent beside what it is sent with every request: each of these once, and with our value. */
export function sentBeside(stage: Stage, exchange: Exchange): FieldList {
  const once: Record<string, RegExp | string> = {
    host: stage.upstreamHost,
    connection: 'keep-alive',
    authorization: `Bearer ${stage.upstreamKey}`,
    'x-request-id': /^[\w-]{1,64}$/,
    'cdn-loop': /^(?:[\w-]+, )*llmp-[0-9a-f]{8}$/,
  };
  return beside(exchange.request.fields, once);
}

/** What a client was given beside what it is given with every answer that is forwarded. */
export function givenBeside(stage: Stage, answer: RawAnswer): FieldList {
  const once: Record<string, RegExp | string> = {
    'x-proxy-cache': 'miss',
    'x-request-id': /^[\w-]{1,64}$/,
    vary: /(?:^|, )Authorization$/,
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
