/** What bodies that do not end may hold of the memory, and what the response cache remembers of them. */
import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Flights, Follower } from '../../../daemon/core/cache/flights.js';
import { TestClock } from '../../support/clock.js';
import { eventually } from '../../support/eventually.js';
import { chunk, type Fields, head, LAST_CHUNK, type RawClient } from '../../support/raw.js';
import { Scene } from '../../support/scene.js';

const MIB = 1024 * 1024;
const SOON_MS = 30_000;
const digestOf = (body: string | Buffer) => hash('sha256', body, 'hex');

describe('request bodies that are held in memory', function () {
  this.timeout(60_000);
  let scene: Scene;
  before(async () => {
    scene = await Scene.open({ HTTP_CACHE_ENABLED: 'true', CLIENT_BODY_TIMEOUT: '60s' });
  });
  beforeEach(async () => {
    await scene.begin();
    scene.provider.answer = (_req, res, { body }) => {
      res.end(digestOf(body));
    };
  });
  afterEach(() => scene.end());
  after(() => scene.close());

  const forwarded = () => scene.provider.received.length;

  /** On each of so many connections sends a request that the cache is asked by, and a part of its body. */
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
      const answer = await client.answer();
      expect([answer.status, answer.body.toString()]).to.deep.equal([200, digestOf(whole)]);
    }
  }

  /** Whether it is answered 408, or loses its connection: behind a refusal of this kind nothing is read. */
  const isRefused = (client: RawClient) => {
    const refused = client.answer().then(
      ({ status }) => status === 408,
      () => true,
    );
    return Promise.race([refused, sleep(SOON_MS, false, { ref: false })]);
  };

  it('take 16 MiB at most where the cache is asked by them: the oldest that is not whole is given up (finding B5)', async () => {
    const part = 'x'.repeat(MIB - 64 * 1024);
    const clients = await begin(20, { 'Transfer-Encoding': 'chunked' }, chunk(part));
    // At most 17 of these fit.
    const oldest = await Promise.all(clients.slice(0, 3).map(isRefused));
    expect(oldest).to.deep.equal([true, true, true]);
    expect(forwarded(), 'nothing is spent on a body that is not whole').to.equal(0);
    const rest = clients.slice(5);
    await finish(rest, chunk('y') + LAST_CHUNK, `${part}y`);
    expect(forwarded()).to.be.within(rest.length, rest.length + 2);
  });

  it('take as much where they are small (finding B5)', async () => {
    const part = 'x'.repeat(64 * 1024 - 1);
    const clients = await begin(270, { 'Content-Length': String(part.length + 1) }, part);
    expect(await isRefused(clients[0] as RawClient)).to.equal(true);
    await finish(clients.slice(-200), 'y', `${part}y`);
  });

  it('count with what their pieces take beside their bytes (finding B5)', async () => {
    // Pieces of one byte take two hundred times as much: these are more than 16 MiB. Nobody else has any to give up.
    const [client] = await begin(1, { 'Transfer-Encoding': 'chunked' }, chunk('x').repeat(100_000));
    await eventually('it is forwarded before it is whole', () => forwarded() === 1);
    await finish(client ? [client] : [], LAST_CHUNK, 'x'.repeat(100_000));
  });

  it('are forwarded as they come while whole ones that wait take all the memory (finding B5)', async () => {
    // All ask for the same and follow the first, which waits for the provider.
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
    for (let i = 0; i < 300; i++) clients.push(await scene.client(start + body));
    await eventually('those that find no room ask by themselves', () => forwarded() > 10);
    expect(forwarded(), 'those that fit follow the first').to.be.below(60);
    answerNow();
    await finish(clients, '', body);
  });
});

class Nobody extends Follower {
  lead = () => undefined;
  followed = () => undefined;
}

describe('what the cache remembers of requests that go alone for a while', () => {
  it('is of bounded size whatever their header fields, and is forgotten in time (finding B4)', () => {
    const clock = new TestClock({ standsStill: true });
    const flights = new Flights(clock);
    // As large as header fields may be.
    const placeOf = (n: number) => ({ projectId: 'p', resource: 'GET /v1/x', variant: `${n}:${'k'.repeat(40_000)}` });
    const isAlone = (n: number) => flights.board(placeOf(n), new Nobody()) === null;
    const before = process.memoryUsage().heapUsed;
    for (let n = 0; n < 10_000; n++) flights.skip(placeOf(n));
    // Whole, their keys would be 400 MB.
    expect(process.memoryUsage().heapUsed - before).to.be.below(100 * MIB);
    expect([isAlone(0), isAlone(9_999)]).to.deep.equal([true, true]);
    flights.skip(placeOf(10_000));
    expect([isAlone(0), isAlone(10_000)]).to.deep.equal([false, true]);
    clock.advance(10_000);
    expect([isAlone(9_998), isAlone(10_000)]).to.deep.equal([false, false]);
  });
});
