import { expect } from 'chai';
import type { WireAuditRecord, WireEvent } from '../../../daemon/api/contract.js';
import { MAX_FOLLOWED, MAX_SCROLLBACK } from '../../../tui/state/feed.js';
import { stripVTControlCharacters } from 'node:util';
import { linesOf } from '../../../tui/lines.js';
import { Operator } from '../operator.js';
import { at, record, SimulatedDaemon } from '../simulated.js';

const records = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => record(from + index));

class Watching extends Operator {
  constructor(count: number) {
    const daemon = new SimulatedDaemon();
    daemon.records = records(0, count);
    super({ daemon, tab: 'audit' });
    this.opens();
  }

  opens(): this {
    return this.acts({ on: 'stream', of: 'audit', is: 'open', failure: null });
  }

  /** Adds records, and delivers them on the stream. */
  comes(...items: WireAuditRecord[]): this {
    this.daemon.records.push(...items);
    return this.streams(...items);
  }

  streams(...items: WireAuditRecord[]): this {
    return this.acts({ on: 'streamed', streamed: items.map((item) => ({ of: 'audit', item })) });
  }

  get feed() {
    return this.state.audit;
  }
  get indexes(): number[] {
    return this.feed.items.map(({ id }) => Number(id.slice(-6)));
  }
}

describe('the audit log', () => {
  it('is loaded, newest last, and followed', () => {
    const watching = new Watching(5);
    expect(watching.indexes).to.deep.equal([0, 1, 2, 3, 4]);
    expect(watching.followed).to.deep.equal([{ of: 'audit', query: {} }]);
    watching.comes(record(5));
    expect(watching.feed).to.include({ isFollowing: true, cursorId: record(5).id, unseen: 0 });
  });

  it('stays in place after moving up, counts new records, and is followed again after G', () => {
    const watching = new Watching(5).press('k');
    watching.comes(record(5), record(6));
    expect(watching.feed).to.include({ isFollowing: false, cursorId: record(3).id, unseen: 2 });
    expect(watching.press('G').state.audit).to.include({ isFollowing: true, cursorId: record(6).id, unseen: 0 });
  });

  it('adds duplicates once, and late records in order', () => {
    const watching = new Watching(3);
    watching.streams(record(5), record(4), record(5), record(1));
    expect(watching.indexes).to.deep.equal([0, 1, 2, 4, 5]);
  });

  it('updates a record whose count has changed', () => {
    const watching = new Watching(3);
    watching.streams(record(1, { action: 'token.use', count: 7 }));
    expect(watching.feed.items[1]?.count).to.equal(7);
  });

  it('loads older records at its start, page by page', () => {
    const watching = new Watching(450);
    expect(watching.indexes[0]).to.equal(250);
    watching.press('g');
    expect(watching.indexes[0]).to.equal(50);
    expect(watching.feed.cursorId).to.equal(record(250).id);
    watching.press('g', 'g');
    expect(watching.indexes).to.have.lengthOf(450);
    expect(watching.feed.older).to.equal(null);
    watching.forgets().press('g');
    expect(watching.asked('audit')).to.equal(0);
  });

  it('loads one older page at a time, and again after a failure', () => {
    const watching = new Watching(450);
    watching.isHeld = true;
    watching.forgets().press('g', 'g', 'k');
    expect(watching.asked('audit')).to.equal(1);
    watching.loses().acts({
      on: 'failed',
      request: watching.effects.flatMap((it) => (it.do === 'load' ? [it.request] : []))[0]!,
      failure: { kind: 'refused', status: 400, code: 'x', message: 'no', retryAfterMs: null },
    });
    watching.forgets().press('g');
    expect(watching.asked('audit')).to.equal(1);
  });

  it('keeps a limited number, and reloads dropped records', () => {
    const watching = new Watching(300);
    for (let from = 300; from < 3_000; from += 100) watching.comes(...records(from, from + 100));
    expect(watching.feed.items).to.have.lengthOf(MAX_FOLLOWED);
    watching.press('g');
    expect(watching.indexes.slice(0, 3)).to.deep.equal([1_801, 1_802, 1_803].map((it) => it));
    for (let presses = 0; presses < 100; presses++) watching.press('g');
    expect(watching.indexes[0]).to.equal(0);
    expect(watching.indexes).to.deep.equal(records(0, 3_000).map((_, index) => index));
  });

  it('keeps a limited number after moving up, too', () => {
    const watching = new Watching(200).press('k');
    for (let from = 200; from < 8_000; from += 200) watching.streams(...records(from, from + 200));
    expect(watching.feed.items).to.have.lengthOf(MAX_SCROLLBACK);
    expect(watching.feed.cursorId).to.equal(watching.feed.items[0]?.id);
  });

  it('has no gap after a visit to another screen', () => {
    const watching = new Watching(5).press('2');
    expect(watching.followed).to.be.empty;
    watching.daemon.records.push(record(5), record(6));
    watching.press('4');
    expect(watching.indexes).to.deep.equal([0, 1, 2, 3, 4, 5, 6]);
    // Recorded after the page was loaded and before the stream was open.
    watching.daemon.records.push(record(7));
    watching.opens();
    expect(watching.indexes.at(-1)).to.equal(7);
  });

  it('starts again if there are more new records than one page holds', () => {
    const watching = new Watching(5).press('2');
    watching.daemon.records.push(...records(5, 1_000));
    watching.press('4');
    expect(watching.indexes[0]).to.equal(800);
    watching.press('g');
    expect(watching.indexes[0]).to.equal(600);
  });

  it('is polled only while stream disconnected', () => {
    const watching = new Watching(5).forgets().passes(10_000);
    expect(watching.asked('audit')).to.equal(0);
    watching.acts({ on: 'stream', of: 'audit', is: 'lost', failure: null }).passes(4_000);
    expect(watching.asked('audit')).to.equal(2);
  });

  it('ignores a response for another filter', () => {
    const watching = new Watching(5);
    const old = watching.did('load')?.request;
    watching.isHeld = true;
    watching.press('/').types('action:cache.purge').press('enter');
    const request = { of: 'audit', query: { limit: '200' } } as const;
    watching.acts({ on: 'loaded', request, data: { items: [record(1)], next: null, total: null } });
    expect(old).to.not.equal(undefined);
    expect(watching.feed.items).to.be.empty;
  });

  it('opens the details of a record, and its token', () => {
    const watching = new Watching(2).press('enter');
    expect(watching.state.audit.opened?.id).to.equal(watching.feed.cursorId);
    expect(watching.press('q').state.audit.opened).to.equal(null);
    expect(watching.press('t').screen).to.equal('token');
    expect(watching.press('q').screen).to.equal('audit');
    expect(watching.press('y').did('copy')?.text).to.equal('request-1');
  });

  it('has nothing to open if it is empty, and still follows after j', () => {
    const watching = new Watching(0).press('j', 'k', 'G', 'g', 'enter');
    expect(watching.says).to.equal('Nothing here');
    expect(watching.state.audit.isFollowing).to.equal(true);
  });
});

describe('events', () => {
  const event = (index: number, status: number) =>
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
      outcome: 'ok',
      model: null,
    }) as unknown as WireEvent;
  const watching = () => {
    const operator = new Operator({ tab: 'events' });
    return operator.acts({ on: 'stream', of: 'events', is: 'open', failure: null });
  };
  const comes = (operator: Operator, ...events: WireEvent[]) =>
    operator.acts({ on: 'streamed', streamed: events.map((item) => ({ of: 'events', item })) });

  it('are known to be empty once the stream is open', () => {
    expect(watching().state.events).to.include({ isKnown: true, stream: 'open' });
  });

  const ids = (operator: Operator) => operator.state.events.items.map(({ id }) => Number(id.slice(-6)));

  it('show only events that match the filter', () => {
    const operator = watching().press('/').types('status:4xx,5xx').press('enter');
    comes(operator, event(1, 200), event(2, 429));
    expect(ids(operator)).to.deep.equal([2]);
  });

  it('are filtered in memory, and none is dropped (finding A6)', () => {
    const operator = comes(watching(), event(1, 200), event(2, 429), event(3, 200), event(4, 502)).forgets();
    operator.press('/').types('status:4xx,5xx').press('enter');
    expect(ids(operator)).to.deep.equal([2, 4]);
    comes(operator, event(5, 200), event(6, 500));
    expect(ids(operator)).to.deep.equal([2, 4, 6]);
    operator.press('/', 'ctrl+u').types('status:2xx').press('enter');
    expect(ids(operator)).to.deep.equal([1, 3, 5]);
    operator.press('escape');
    expect(ids(operator), 'all are there again').to.deep.equal([1, 2, 3, 4, 5, 6]);
    expect(operator.did('follow'), 'the stream goes on, so that nothing is missed in between').to.equal(undefined);
  });

  it('keep rare matching events among many others (finding A6)', () => {
    const operator = comes(watching(), event(1, 502)).press('/').types('status:5xx').press('enter');
    for (let from = 10; from < 5_000; from += 500) {
      comes(operator, ...Array.from({ length: 500 }, (_, index) => event(from + index, 200)));
    }
    comes(operator, event(9_000, 503));
    expect(ids(operator)).to.deep.equal([1, 9_000]);
    expect(operator.state.events.filteredOut.length).to.equal(MAX_FOLLOWED);
  });

  it('keep the details open when new events arrive (finding A6)', () => {
    const operator = comes(watching(), event(1, 200), event(2, 429)).press('enter');
    const shown = () => linesOf(operator.state).map(stripVTControlCharacters).join('\n');
    expect(shown()).to.contain('request-2');
    comes(operator, event(3, 200), event(4, 200));
    expect(shown())
      .to.match(/ids +request-2/)
      .and.to.contain('2 new below');
    for (let from = 10; from < 9_000; from += 500) {
      comes(operator, ...Array.from({ length: 500 }, (_, index) => event(from + index, 200)));
    }
    expect(shown(), 'also when it has long left the list').to.match(/ids +request-2/);
    operator.press('/').types('status:5xx').press('enter');
    expect(shown(), 'and when a filter does not let it through').to.match(/ids +request-2/);
    operator.press('escape');
    expect(operator.state.events.opened).to.equal(null);
  });

  it('change the details with j and k (finding A6)', () => {
    const operator = comes(watching(), event(1, 200), event(2, 429), event(3, 200)).press('enter', 'k');
    expect(operator.state.events.opened?.id).to.equal(event(2, 429).id);
    expect(operator.press('G', 'q').state.events.isFollowing).to.equal(true);
  });

  it('do not change while paused, and are not streamed', () => {
    const operator = comes(watching(), event(1, 200)).press('p');
    expect(operator.followed).to.be.empty;
    expect(comes(operator, event(2, 200)).state.events.items).to.have.lengthOf(1);
    expect(operator.press('p').followed).to.have.lengthOf(1);
  });

  it('are stored up to a limit', () => {
    const operator = watching();
    for (let from = 0; from < 4_000; from += 500) {
      comes(operator, ...Array.from({ length: 500 }, (_, index) => event(from + index, 200)));
    }
    expect(operator.state.events.items).to.have.lengthOf(MAX_FOLLOWED);
  });
});
