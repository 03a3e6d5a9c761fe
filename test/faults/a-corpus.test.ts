import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { RawClient } from '../support/raw.js';
import { expectRefusal } from '../support/refusals.js';
import { CORPUS, type Outcome, withSecret } from './support/corpus.js';
import { staged } from './support/fault-fixture.js';

function summaryOf({ served, isPreflight, refused, isBrokenOff }: Outcome): string {
  const results =
    served.length > 0 ? [`${served.length === 1 ? 'a request' : `${served.length} requests`} served`] : [];
  if (isPreflight) results.push('204, not forwarded');
  if (refused) results.push(`${refused.status}${isBrokenOff ? ', the upstream request is aborted' : ''}`);
  return results.join(', then ');
}

const SMALL_BYTES = 3_000;

describe('A: the corpus of requests that once broke a proxy', () => {
  const { stage, it } = staged();

  async function sendInPieces(client: RawClient, bytes: Buffer): Promise<void> {
    const size = bytes.length > SMALL_BYTES ? 1_000 : 1;
    for (let at = 0; at < bytes.length; at += size) {
      client.send(bytes.subarray(at, at + size));
      await turn();
    }
  }

  /** @param before the number of requests that had reached the upstream before. */
  async function expectOutcome(client: RawClient, outcome: Outcome, before: number): Promise<void> {
    for (const request of outcome.served) {
      expect((await client.response(request.split(' ')[0])).status).to.equal(200);
    }
    if (outcome.isPreflight) expect((await client.response()).status).to.equal(204);
    if (outcome.refused) expectRefusal(await client.response(), outcome.refused);
    if (outcome.isClosed) {
      await client.closed;
    } else {
      // The next request is read from its first byte, and nothing else was responded to in between.
      client.send(stage.get({}, '/v1/next'));
      expect((await client.response()).status).to.equal(200);
    }
    expect(client.pending.toString('latin1'), 'bytes after the last response').to.equal('');
    const exchanges = stage.upstream.exchanges.slice(before);
    const broken = exchanges.splice(outcome.isBrokenOff ? outcome.served.length : Infinity);
    expect(broken.length).to.be.at.most(1);
    await broken[0]?.closed();
    expect(broken[0]?.request.isComplete ?? false, 'complete at the upstream').to.equal(false);
    const requests = exchanges.map(({ method, target, request: { body } }) => `${method} ${target} ${body.toString()}`);
    expect(requests).to.deep.equal([...outcome.served, ...(outcome.isClosed ? [] : ['GET /v1/next '])]);
  }

  for (const { title, text, outcome } of CORPUS) {
    it(`${title}: ${summaryOf(outcome)}`, async () => {
      const bytes = withSecret(text, stage.secret);
      await expectOutcome(await stage.client(bytes), outcome, 0);
      const before = stage.upstream.exchanges.length;
      const client = await stage.client();
      await sendInPieces(client, bytes);
      const refused = outcome.refusedInPieces ?? outcome.refused;
      await expectOutcome(client, { ...outcome, ...(refused && { refused }) }, before);
    });
  }
});
