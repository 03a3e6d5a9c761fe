import { expect } from 'chai';
import { ApiError, type StreamItem, type StreamOptions, Unreachable } from '../../daemon/api/client.js';
import { followStream } from '../../daemon/api/follow-stream.js';

const unreachable = () => new Unreachable('ECONNREFUSED');

/** What happens at the next request to the daemon. */
type Act = (options: StreamOptions) => AsyncIterable<StreamItem<string>>;

const gives = (...items: string[]): Act =>
  async function* ({ onOpen }) {
    onOpen?.();
    for (const item of items) yield await Promise.resolve({ id: `id of ${item}`, item });
  };
const failsWith = (error: Error, ...before: string[]): Act =>
  async function* (options) {
    if (before.length > 0) yield* gives(...before)(options);
    throw await Promise.resolve(error);
  };

describe('followed stream', () => {
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

  /** Follows until the script is finished. */
  function follow(acts: Act[], lastEventId?: string): Promise<void> {
    return followStream<string>({
      open(options) {
        places.push(options.lastEventId);
        const act = acts.shift();
        if (!act) leaving.abort();
        return (act ?? gives())(options);
      },
      onItem: (item, id) => void told.push(`${item} (${id})`),
      onConnected: () => void told.push('connected'),
      onLost: (error) => void told.push(error === null ? 'ended' : `lost: ${(error as Error).message}`),
      lastEventId,
      signal: leaving.signal,
      pause: (ms) => {
        pauses.push(ms);
        return Promise.resolve();
      },
    });
  }

  it('delivers each item, and reconnects after the last one', async () => {
    await follow([gives('one', 'two'), gives('three')]);
    expect(told).to.deep.equal([
      ...['connected', 'one (id of one)', 'two (id of two)', 'ended'],
      ...['connected', 'three (id of three)', 'ended', 'connected'],
    ]);
    expect(places).to.deep.equal([undefined, 'id of two', 'id of three']);
  });

  it('continues after the given event', async () => {
    await follow([], 'known');
    expect(places).to.deep.equal(['known']);
  });

  it('reconnects when the daemon is lost, or unreachable at the start', async () => {
    await follow([failsWith(unreachable()), failsWith(unreachable(), 'one'), gives('two')]);
    expect(told).to.deep.equal([
      'lost: ECONNREFUSED',
      ...['connected', 'one (id of one)', 'lost: ECONNREFUSED'],
      ...['connected', 'two (id of two)', 'ended', 'connected'],
    ]);
  });

  it('backs off with jitter between half and the full delay, up to 30 seconds', async () => {
    await follow(Array.from({ length: 10 }, () => failsWith(unreachable())));
    const longest = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000];
    expect(pauses).to.have.length(longest.length);
    pauses.forEach((ms, i) => {
      expect(ms).to.be.within(longest[i]! / 2, longest[i]!);
    });
  });

  it('resets the backoff once an item arrives', async () => {
    await follow([failsWith(unreachable()), failsWith(unreachable()), failsWith(unreachable()), gives('one')]);
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
    it(`${isAskedAgain ? 'retries' : 'ends'} after a response ${status}`, async () => {
      const refusal = new ApiError(status, 'a_code', 'no', null, null);
      const failure = await follow([failsWith(refusal)]).catch((error: unknown) => error);
      expect(failure).to.equal(isAskedAgain ? undefined : refusal);
      expect(places).to.have.length(isAskedAgain ? 2 : 1);
    });
  }

  it('ends with an error thrown by the consumer', async () => {
    const failure = await followStream<string>({
      open: gives('one'),
      onItem() {
        throw unreachable();
      },
      onConnected: () => undefined,
      onLost: () => told.push('lost'),
      signal: leaving.signal,
      pause: () => Promise.resolve(),
    }).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Unreachable);
    expect(told).to.deep.equal([]);
  });

  it('sends no request after an abort', async () => {
    leaving.abort();
    await follow([gives('one')]);
    expect(places).to.deep.equal([]);
  });
});
