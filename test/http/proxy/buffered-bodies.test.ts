/** Memory limits for incomplete request bodies, and for what the response cache remembers of them. */
import { hash } from 'node:crypto';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { RequestCoalescing, Follower } from '../../../daemon/core/cache/request-coalescing.js';
import { TestClock } from '../../support/clock.js';
import { heldAfterCollection } from '../../faults/support/heap.js';
import { eventually } from '../../support/eventually.js';
import { chunk, type Fields, head, LAST_CHUNK, type RawClient } from '../../support/raw.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

const MIB = 1024 * 1024;
const SOON_MS = 30_000;
const digestOf = (body: string | Buffer) => hash('sha256', body, 'hex');

describe('request bodies that are buffered in memory', function () {
  this.timeout(60_000);
  const scene = ProxyFixture.forSuite({ HTTP_CACHE_ENABLED: 'true', CLIENT_BODY_TIMEOUT: '60s' });
  beforeEach(() => {
    scene.provider.answer = (_req, res, { body }) => {
      res.end(digestOf(body));
    };
  });

  const forwarded = () => scene.provider.received.length;

  /** Opens `count` connections, and sends on each a request whose body is part of its cache key, with a part of that body. */
  async function begin(count: number, fields: Fields, part: string): Promise<RawClient[]> {
    const clients: RawClient[] = [];
    for (let i = 0; i < count; i++) {
      const start = head(`POST /v1/of/${i}`, scene.secret, { 'Cache-Control': 'public', ...fields });
      clients.push(await scene.client(start + part));
    }
    return clients;
  }

  async function finish(clients: readonly RawClient[], rest: string, whole: string): Promise<void> {
    for (const client of clients) client.send(rest);
    for (const client of clients) {
      const answer = await client.response();
      expect([answer.status, answer.body.toString()]).to.deep.equal([200, digestOf(whole)]);
    }
  }

  /** Whether the client gets 503 or its connection is closed; after a refusal of this kind no more input is read. */
  const isRefused = (client: RawClient) => {
    const refused = client.response().then(
      ({ status }) => status === 503,
      () => true,
    );
    return Promise.race([refused, sleep(SOON_MS, false, { ref: false })]);
  };

  it('are limited if they are part of a cache key: the oldest incomplete body is discarded', async () => {
    const part = 'x'.repeat(MIB - 64 * 1024);
    const clients = await begin(56, { 'Transfer-Encoding': 'chunked' }, chunk(part));
    // Up to 48 of these fit.
    const oldest = await Promise.all(clients.slice(0, 3).map(isRefused));
    expect(oldest).to.deep.equal([true, true, true]);
    expect(forwarded(), 'nothing is spent on a body that is not whole').to.equal(0);
    const rest = clients.slice(20);
    await finish(rest, chunk('y') + LAST_CHUNK, `${part}y`);
    expect(forwarded()).to.equal(rest.length);
  });

  it('have the same limit if they are small', async () => {
    const part = 'x'.repeat(64 * 1024 - 1);
    const clients = await begin(800, { 'Content-Length': String(part.length + 1) }, part);
    expect(await isRefused(clients[0] as RawClient)).to.equal(true);
    await finish(clients.slice(-500), 'y', `${part}y`);
  });

  it('take as much memory as they have bytes, whatever pieces they arrive in', async () => {
    const body = 'x'.repeat(20_000);
    const [client] = await begin(1, { 'Content-Length': String(body.length + 1) }, '');
    const before = heldAfterCollection();
    // One byte for each turn of the event loop: the daemon reads each by itself.
    for (const byte of body) {
      client!.send(byte);
      await turn();
    }
    expect(heldAfterCollection() - before).to.be.below(40 * body.length);
    await finish([client!], 'y', `${body}y`);
  });

  it('that wait for an identical request are sent by themselves when they take all the memory', async () => {
    // All send the same request and follow the first, which waits for the provider.
    const body = 'x'.repeat(60 * 1024);
    const start = head('POST /v1/same', scene.secret, {
      'Cache-Control': 'public',
      'Content-Length': String(body.length),
    });
    let answerNow: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => (answerNow = resolve));
    scene.provider.answer = async (_req, res, received) => {
      await slow;
      res.end(digestOf(received.body));
    };
    const clients: RawClient[] = [];
    for (let i = 0; i < 860; i++) clients.push(await scene.client(start + body));
    await eventually('those that find no room ask by themselves', () => forwarded() > 10);
    expect(forwarded(), 'those that fit follow the first').to.be.below(200);
    answerNow();
    await finish(clients, '', body);
  });
});

class Nobody extends Follower {
  lead = () => undefined;
  gainedFollower = () => undefined;
  lostFollower = () => undefined;
}

describe('the memory of the cache for requests that are not coalesced', () => {
  it('is limited whatever their headers are, and expires', () => {
    const clock = new TestClock({ standsStill: true });
    const flights = new RequestCoalescing(clock);
    // As large as headers may be.
    const placeOf = (n: number) => ({ projectId: 'p', resource: 'GET /v1/x', variant: `${n}:${'k'.repeat(40_000)}` });
    const isAlone = (n: number) => flights.join(placeOf(n), new Nobody()) === null;
    const before = process.memoryUsage().heapUsed;
    for (let n = 0; n < 10_000; n++) flights.suspend(placeOf(n));
    // Uncompressed, their keys would take 400 MB.
    expect(process.memoryUsage().heapUsed - before).to.be.below(100 * MIB);
    expect([isAlone(0), isAlone(9_999)]).to.deep.equal([true, true]);
    flights.suspend(placeOf(10_000));
    expect([isAlone(0), isAlone(10_000)]).to.deep.equal([false, true]);
    clock.advance(10_000);
    expect([isAlone(9_998), isAlone(10_000)]).to.deep.equal([false, false]);
  });
});
