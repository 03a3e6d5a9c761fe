import { expect } from 'chai';
import { ApiError, type Streamed, type StreamOptions, Unreachable } from '../../daemon/api/client.js';
import type { WireEvent } from '../../daemon/api/contract.js';
import { ManagementClient } from '../../daemon/api/client.js';
import { followStream } from '../../tui/effects/follow.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';

const away = () => new Unreachable('ECONNREFUSED');

/** What happens when the daemon is asked the next time. */
type Act = (options: StreamOptions) => AsyncIterable<Streamed<string>>;

const gives = (...items: string[]): Act =>
  async function* ({ opened }) {
    opened?.();
    for (const item of items) yield await Promise.resolve({ id: `id of ${item}`, item });
  };
const failsWith = (error: Error, ...before: string[]): Act =>
  async function* (options) {
    if (before.length > 0) yield* gives(...before)(options);
    throw await Promise.resolve(error);
  };

describe('a stream that is followed', () => {
  let told: string[];
  let pauses: number[];
  let places: (string | undefined)[];
  let leaving: AbortController;

  beforeEach(() => {
    told = [];
    pauses = [];
    places = [];
    leaving = new AbortController();
  });

  /** Follows until there is nothing left to happen. */
  function follow(acts: Act[], lastEventId?: string): Promise<void> {
    return followStream<string>({
      open(options) {
        places.push(options.lastEventId);
        const act = acts.shift();
        if (!act) leaving.abort();
        return (act ?? gives())(options);
      },
      item: (item, id) => void told.push(`${item} (${id})`),
      connected: () => void told.push('connected'),
      lost: (error) => void told.push(error === null ? 'ended' : `lost: ${(error as Error).message}`),
      lastEventId,
      signal: leaving.signal,
      pause: (ms) => {
        pauses.push(ms);
        return Promise.resolve();
      },
    });
  }

  it('gives each item, and asks again for what comes after the last one', async () => {
    await follow([gives('one', 'two'), gives('three')]);
    expect(told).to.deep.equal([
      ...['connected', 'one (id of one)', 'two (id of two)', 'ended'],
      ...['connected', 'three (id of three)', 'ended', 'connected'],
    ]);
    expect(places).to.deep.equal([undefined, 'id of two', 'id of three']);
  });

  it('goes on behind the event it is told of', async () => {
    await follow([], 'known');
    expect(places).to.deep.equal(['known']);
  });

  it('asks again when the daemon is lost, and when it was away from the beginning', async () => {
    await follow([failsWith(away()), failsWith(away(), 'one'), gives('two')]);
    expect(told).to.deep.equal([
      'lost: ECONNREFUSED',
      ...['connected', 'one (id of one)', 'lost: ECONNREFUSED'],
      ...['connected', 'two (id of two)', 'ended', 'connected'],
    ]);
  });

  it('waits longer each time in vain, between half of it and all of it, and not over half a minute', async () => {
    await follow(Array.from({ length: 10 }, () => failsWith(away())));
    const longest = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000];
    expect(pauses).to.have.length(longest.length);
    pauses.forEach((ms, i) => {
      expect(ms).to.be.within(longest[i]! / 2, longest[i]!);
    });
  });

  it('waits shortly again once something came', async () => {
    await follow([failsWith(away()), failsWith(away()), failsWith(away()), gives('one')]);
    expect(pauses.at(-1)).to.be.within(250, 500);
  });

  for (const [status, isAskedAgain] of [
    [503, true],
    [500, true],
    [429, true],
    [401, false],
    [400, false],
    [404, false],
  ] as const) {
    it(`${isAskedAgain ? 'asks again' : 'ends'} when it is answered ${status}`, async () => {
      const refusal = new ApiError(status, 'a_code', 'no', null, null);
      const failure = await follow([failsWith(refusal)]).catch((error: unknown) => error);
      expect(failure).to.equal(isAskedAgain ? undefined : refusal);
      expect(places).to.have.length(isAskedAgain ? 2 : 1);
    });
  }

  it('ends with the error of who shows it', async () => {
    const failure = await followStream<string>({
      open: gives('one'),
      item() {
        throw away();
      },
      connected: () => undefined,
      lost: () => told.push('lost'),
      signal: leaving.signal,
    }).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Unreachable);
    expect(told).to.deep.equal([]);
  });

  it('asks nothing when nobody looks any more', async () => {
    leaving.abort();
    await follow([gives('one')]);
    expect(places).to.deep.equal([]);
  });

  it('waits no longer when nobody looks any more', async () => {
    const lost = new Promise<void>((resolve) => {
      void followStream<string>({
        open: failsWith(away()),
        item: () => undefined,
        connected: () => undefined,
        lost: () => {
          resolve();
        },
        signal: leaving.signal,
      }).then(() => told.push('over'));
    });
    await lost;
    leaving.abort();
    await eventually('it is over', () => told.length === 1);
  });

  describe('of a daemon', () => {
    let daemon: TestDaemon;

    before(async () => {
      daemon = await startDaemon();
    });
    after(() => daemon.stop());

    it('is connected before anything comes, and leaves nothing behind', async () => {
      const client = new ManagementClient({
        server: daemon.url,
        managementToken: MANAGEMENT_TOKEN,
        frontEnd: 'tui',
        timeoutMs: 10_000,
        fetch,
      });
      const kinds: string[] = [];
      const following = followStream<WireEvent>({
        open: (options) => client.events({}, options),
        item: ({ kind }) => void kinds.push(kind),
        connected: () => void told.push('connected'),
        lost: () => void told.push('lost'),
        signal: leaving.signal,
      });
      await eventually('it is connected', () => told.length === 1);
      await eventually('it is followed', () => daemon.daemon.streams.size === 1);
      await daemon.createToken((await daemon.createProject()).id);
      await eventually('it is told', () => kinds.includes('token.created'));
      leaving.abort();
      await following;
      await eventually('it has gone', () => daemon.daemon.streams.size === 0);
      expect(told).to.deep.equal(['connected']);
    });
  });
});
