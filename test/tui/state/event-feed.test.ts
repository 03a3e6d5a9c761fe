import { expect } from 'chai';
import type { WireEvent, WireRequestEvent } from '../../../daemon/api/contract.js';
import { plainLines } from '../screens/rendering.js';
import { MAX_FOLLOWED, MAX_SCROLLBACK } from '../../../tui/state/feed.js';
import { Operator } from '../operator.js';
import { at, matchesQuery, REFUSED, SimulatedDaemon } from '../simulated.js';

const event = (index: number, status = 200, more: Partial<WireRequestEvent> = {}): WireEvent =>
  ({
    id: `event-${String(index).padStart(6, '0')}`,
    kind: 'request.completed',
    time: at(index),
    token_id: null,
    project_id: null,
    request_id: `request-${index}`,
    status,
    method: 'POST',
    path: '/v1/x',
    code: null,
    outcome: status < 400 ? 'ok' : status < 500 ? 'upstream_refused' : 'upstream_error',
    model: null,
    usage: { source: 'missing' },
    ...more,
  }) as unknown as WireEvent;
/** Every hundredth failed. */
const events = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => event(from + index, (from + index) % 100 === 0 ? 502 : 200));

class Watching extends Operator {
  constructor(stored: readonly WireEvent[] = [], more: { isOpen?: boolean } = {}) {
    const daemon = new SimulatedDaemon();
    daemon.events = [...stored];
    super({ daemon, tab: 'events' });
    if (more.isOpen ?? true) this.opens();
  }

  opens(): this {
    return this.acts({ on: 'stream', of: 'events', is: 'open', failure: null });
  }

  /** Stores events in the daemon, which streams those that match the query of the stream. */
  comes(...items: WireEvent[]): this {
    this.daemon.events.push(...items);
    const [stream] = this.followed;
    if (stream?.of !== 'events') return this;
    return this.streams(...items.filter((item) => matchesQuery(item, stream.query)));
  }

  streams(...items: WireEvent[]): this {
    return this.acts({ on: 'streamed', streamed: items.map((item) => ({ of: 'events', item })) });
  }

  filters(text: string): this {
    this.press('/', 'ctrl+u').types(text).press('enter');
    return this.opens();
  }

  get feed() {
    return this.state.events;
  }
  get indexes(): number[] {
    return this.feed.items.map(({ id }) => Number(id.slice(-6)));
  }
  get shown(): string {
    return plainLines(this.state).join('\n');
  }
}

const failures = (from: number, to: number) =>
  events(from, to).flatMap((it, index) => ('status' in it && it.status === 502 ? [from + index] : []));

describe('events', () => {
  it('begin with those that the daemon has stored, and go on with new ones', () => {
    const watching = new Watching(events(1, 51));
    expect(watching.indexes).to.have.lengthOf(50);
    expect(watching.feed).to.include({ isKnown: true, isFollowing: true, cursorId: event(50).id });
    watching.comes(event(51));
    expect(watching.indexes.at(-1)).to.equal(51);
    expect(watching.followed).to.deep.equal([{ of: 'events', query: { since: '5s' } }]);
  });

  it('are loaded again when the stream is open, so that none is missed in between', () => {
    const watching = new Watching(events(1, 5), { isOpen: false });
    watching.daemon.events.push(event(5));
    expect(watching.opens().indexes).to.deep.equal([1, 2, 3, 4, 5]);
    watching.forgets().passes(10_000);
    expect(watching.asked('events'), 'then the stream delivers').to.equal(0);
  });

  it('are polled while the stream is disconnected', () => {
    const watching = new Watching(events(1, 5)).acts({ on: 'stream', of: 'events', is: 'lost', failure: null });
    watching.daemon.events.push(...events(5, 8));
    watching.forgets().passes(4_000);
    expect(watching.asked('events')).to.equal(2);
    expect(watching.indexes.at(-1)).to.equal(7);
  });

  it('are filtered by the daemon, so that rare ones are found among many', () => {
    const watching = new Watching(events(1, 5_000));
    expect(watching.indexes).to.have.lengthOf(300);
    watching.filters('outcome:failed');
    expect(watching.indexes).to.deep.equal(failures(1, 5_000));
    expect(watching.followed[0]).to.have.nested.property('query.outcome').that.includes('upstream_error');
    watching.comes(...events(5_000, 5_201));
    expect(watching.indexes).to.deep.equal(failures(1, 5_201));
  });

  it('stay on the screen if they match, also when the daemon has dropped them (finding A6)', () => {
    const watching = new Watching([event(1), event(2, 429), event(3), event(4, 502)]);
    watching.daemon.events = [event(4, 502)];
    watching.filters('status:4xx,5xx');
    expect(watching.indexes).to.deep.equal([2, 4]);
    watching.comes(event(5), event(6, 500));
    expect(watching.indexes).to.deep.equal([2, 4, 6]);
    watching.filters('status:2xx');
    expect(watching.indexes).to.deep.equal([1, 3, 5]);
    watching.press('escape').opens();
    expect(watching.indexes, 'all are there again').to.deep.equal([1, 2, 3, 4, 5, 6]);
  });

  it('have no gap after a filter, however many came meanwhile', () => {
    const watching = new Watching(events(1, 101)).filters('status:5xx');
    watching.comes(...events(101, 2_000));
    expect(watching.indexes).to.deep.equal(failures(1, 2_000));
    watching.press('k').filters('');
    expect(watching.indexes).to.deep.equal(events(1, 2_000).map((_, index) => index + 1));
  });

  it('have no gap after a visit to another screen, or a pause', () => {
    for (const [leave, back] of [
      ['2', '6'],
      ['p', 'p'],
    ] as const) {
      const watching = new Watching(events(1, 11)).press(leave);
      expect(watching.followed).to.be.empty;
      watching.comes(...events(11, 700)).passes(10_000);
      expect(watching.indexes, leave).to.have.lengthOf(10);
      watching.press(back).opens();
      expect(watching.indexes, leave).to.deep.equal(events(1, 700).map((_, index) => index + 1));
    }
  });

  it('drop what is before a gap that is too large to be filled', () => {
    const watching = new Watching(events(1, 11)).press('2');
    watching
      .comes(...events(11, 20_000))
      .press('6')
      .opens();
    expect(watching.indexes[0]).to.be.above(10_000);
    expect(watching.indexes.at(-1)).to.equal(19_999);
    const [first = 0] = watching.indexes;
    expect(watching.indexes).to.deep.equal(Array.from({ length: 20_000 - first }, (_, index) => first + index));
  });

  it('are loaded page by page at the first one, and searched for as long as there is none', () => {
    const watching = new Watching(events(1, 1_000)).press('g');
    expect(watching.indexes[0]).to.equal(400);
    watching.press('g', 'g');
    expect(watching.indexes[0]).to.equal(1);
    watching.forgets().press('g');
    expect(watching.asked('events'), 'there are no more').to.equal(0);
    const searching = new Watching();
    searching.daemon.events = [event(1, 502), ...events(2, 99)];
    searching.daemon.searchedPerPage = 10;
    searching.filters('status:5xx');
    expect(searching.indexes).to.deep.equal([1]);
  });

  it('end a search after a limited number of pages, and continue it on request', () => {
    const watching = new Watching();
    watching.daemon.events = [event(1, 502), ...events(2, 99)];
    watching.daemon.searchedPerPage = 4;
    watching.daemon.eventPages = 0;
    watching.filters('status:5xx');
    expect(watching.feed.search).to.equal(null);
    expect([watching.indexes, watching.daemon.eventPages]).to.deep.equal([[], 22]);
    expect(watching.shown).to.contain('searches older ones');
    watching.press('g', 'g');
    expect(watching.indexes).to.deep.equal([1]);
  });

  it('ignore pages of another filter', () => {
    const watching = new Watching(events(1, 900));
    watching.isHeld = true;
    watching.press('g').press('/').types('status:5xx').press('enter');
    const request = { of: 'events', query: { limit: '300' } } as const;
    watching.acts({ on: 'loaded', request, data: { items: [event(7)], next: '1', total: null } });
    expect(watching.indexes).to.not.include(7);
    watching.isHeld = false;
    watching.hears().opens();
    expect(watching.indexes).to.deep.equal(failures(1, 900));
  });

  it('can be loaded again after a failure', () => {
    const watching = new Watching(events(1, 900));
    watching.daemon.failing = ({ of }) => (of === 'events' ? REFUSED : null);
    watching.press('g');
    expect(watching.feed).to.include({ isReadingOlder: false, search: null });
    watching.daemon.failing = () => null;
    expect(watching.press('g').indexes[0]).to.equal(300);
  });

  it('keep the details open when new events arrive (finding A6)', () => {
    const watching = new Watching([event(1), event(2, 429)]).press('enter');
    expect(watching.shown).to.contain('request-2');
    watching.comes(event(3), event(4));
    expect(watching.shown)
      .to.match(/ids +request-2/)
      .and.to.contain('2 new below');
    for (let from = 10; from < 9_000; from += 500) watching.comes(...events(from, from + 500));
    expect(watching.shown, 'also when it has long left the list').to.match(/ids +request-2/);
    watching.filters('status:5xx');
    expect(watching.shown, 'and when a filter does not let it through').to.match(/ids +request-2/);
    watching.press('escape');
    expect(watching.feed.opened).to.equal(null);
  });

  it('change the details with j and k (finding A6)', () => {
    const watching = new Watching([event(1), event(2, 429), event(3)]).press('enter', 'k');
    expect(watching.feed.opened?.id).to.equal(event(2).id);
    expect(watching.press('G', 'q').feed.isFollowing).to.equal(true);
  });

  it('do not change while paused, and are not streamed', () => {
    const watching = new Watching([event(1)]).press('p');
    expect(watching.followed).to.be.empty;
    expect(watching.streams(event(2)).indexes).to.deep.equal([1]);
    expect(watching.press('p').followed).to.have.lengthOf(1);
  });

  it('are stored up to a limit', () => {
    const watching = new Watching();
    for (let from = 0; from < 4_000; from += 500) watching.comes(...events(from, from + 500));
    expect(watching.feed.items).to.have.lengthOf(MAX_FOLLOWED);
    watching.press('k');
    for (let from = 4_000; from < 12_000; from += 500) watching.comes(...events(from, from + 500));
    expect(watching.feed.items).to.have.lengthOf(MAX_SCROLLBACK);
  });
});
