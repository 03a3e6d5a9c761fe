import { expect } from 'chai';
import type { Refusal } from '../../daemon/core/refusal.js';
import { mintSecret } from '../../daemon/core/token.js';
import { head, type RawClient } from '../support/raw.js';
import { heapAfterCollection } from './support/heap.js';
import { staged } from './support/fault-fixture.js';

describe('H: authentication, long tests', function () {
  this.timeout(600_000);
  const { stage, it } = staged();

  /** Milliseconds from sending a request to the first byte of its response. */
  const timed = (client: RawClient, request: Buffer): Promise<number> =>
    new Promise((resolve) => {
      const sentAtMs = performance.now();
      client.socket.once('data', () => {
        resolve(performance.now() - sentAtMs);
        client.skip();
      });
      client.send(request);
    });

  // Differences of about a microsecond remain, from one comparison more or less. They do not distinguish responses. Someone with many tries
  // at a secret of 256 bits learns only that it was once a token.
  it('H02 the duration of a refusal does not distinguish an unknown token from a revoked or an expired one', async () => {
    const ROUNDS = 10_000;
    const [revoked, expired] = [await stage.issue(), await stage.issue({ duration_minutes: 1 })];
    await stage.daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
    stage.daemon.clock.advance(60_000);
    const secrets = { unknown: mintSecret(), revoked: revoked.token, expired: expired.token };
    const kinds = Object.entries(secrets).map(([kind, secret]) => ({
      kind,
      request: Buffer.from(head('GET /v1/models', secret)),
      times: [] as number[],
    }));
    const client = await stage.client();
    for (let round = -1_000; round < ROUNDS; round++) {
      // In another order each time, so that whatever slows the machine down slows all kinds equally.
      const first = Math.floor(Math.random() * kinds.length);
      for (let i = 0; i < kinds.length; i++) {
        const { request, times } = kinds[(first + i) % kinds.length]!;
        const time = await timed(client, request);
        if (round >= 0) times.push(time);
      }
    }
    await stage.expectNothingSpent();
    for (const one of kinds) {
      for (const other of kinds) {
        const chance = chanceOfLess(one.times, other.times);
        expect(chance, `how often ${one.kind} is refused faster than ${other.kind}`).to.be.within(0.4, 0.6);
      }
    }
  });

  it('H11 100,000 unknown tokens cost one lookup each and bounded memory, and known tokens are unaffected', async () => {
    const MANY = 100_000;
    const TOGETHER = 100;
    const LARGEST_GROWTH = 4_000_000; // Bytes. Remembering all of them would take four times as much.
    const { admission, stores } = stage.daemon.daemon;
    const kindOf = async (secret: string) => {
      try {
        admission.finish(await admission.admit(secret));
        return 'admitted';
      } catch (error) {
        return (error as Refusal).kind;
      }
    };
    const flood = async (count: number) => {
      for (let tried = 0; tried < count; tried += TOGETHER) {
        const secrets = Array.from({ length: TOGETHER }, mintSecret);
        // Twice at once, and once more a little later.
        const kinds = await Promise.all([...secrets, ...secrets].map(kindOf));
        kinds.push(await kindOf(secrets[0]!));
        expect(new Set(kinds)).to.deep.equal(new Set(['unauthorized']));
        expect(await kindOf(stage.secret)).to.equal('admitted');
      }
    };
    await flood(20_000); // More tokens than are remembered.
    const [statements, heap] = [stores.database.statements, heapAfterCollection()];
    await flood(MANY);
    // Without heartbeats and the known token, which is read again every 30 s.
    expect(stores.database.statements - statements, 'statements').to.be.within(MANY, MANY + 1_000);
    expect(heapAfterCollection() - heap, 'growth of the heap').to.be.below(LARGEST_GROWTH);
    await stage.expectNothingSpent();
  });
});

describe('H: secrets, long tests', () => {
  it('H14 a million secrets are all different', function () {
    this.timeout(600_000);
    const MANY = 1_000_000;
    const secrets = new Set<string>();
    for (let i = 0; i < MANY; i++) secrets.add(mintSecret());
    expect(secrets.size).to.equal(MANY);
  });
});

/** How often one of `some` is less than one of `others`; equal ones count half (Mann and Whitney). */
function chanceOfLess(some: readonly number[], others: readonly number[]): number {
  const all = [
    ...some.map((value) => ({ value, isSome: true })),
    ...others.map((value) => ({ value, isSome: false })),
  ].sort((a, b) => a.value - b.value);
  let ranks = 0;
  for (const [index, { isSome }] of all.entries()) if (isSome) ranks += index + 1;
  const more = ranks - (some.length * (some.length + 1)) / 2;
  return 1 - more / (some.length * others.length);
}
