import { expect } from 'chai';
import type { WireAuditRecord } from '../../../daemon/api/contract.js';
import { MAX_FOLLOWED } from '../../../tui/state/feed.js';
import { Operator } from '../operator.js';
import { record, SimulatedDaemon } from '../simulated.js';

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

  it('has no gap if there are more new records than one page holds', () => {
    const watching = new Watching(5).press('2');
    watching.daemon.records.push(...records(5, 900));
    watching.press('4');
    expect(watching.indexes).to.deep.equal(records(0, 900).map((_, index) => index));
  });

  it('is polled with a filter that the stream does not support, and counts the new records', () => {
    const watching = new Watching(5).press('/').types('since:1d').press('enter');
    expect(watching.followed).to.deep.equal([]);
    expect(watching.indexes).to.deep.equal([0, 1, 2, 3, 4]);
    watching.press('k');
    watching.daemon.records.push(record(5), record(6));
    watching.passes(2_000);
    expect(watching.feed).to.include({ isFollowing: false, cursorId: record(3).id, unseen: 2 });
    expect(watching.passes(4_000).state.audit.items).to.have.lengthOf(7);
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

describe('a batch in the audit log', () => {
  const BATCH = '7e6d5c4b-2f1a-4b3c-9d8e-5a6b7c8d9e0f';
  const member = (index: number, more: Partial<WireAuditRecord> = {}) => record(index, { batch: BATCH, ...more });

  function watching(...members: WireAuditRecord[]): Watching {
    const it = new Watching(3);
    it.daemon.records.push(...members);
    return it.press('2', '4').opens();
  }

  it('is one row, which stays the same row while the batch grows', () => {
    const it = watching(member(3));
    expect(it.feed.items).to.have.length(4);
    expect(it.feed.items[3]).to.include({ id: BATCH, count: null });
    it.comes(member(4)).comes(member(5), record(6), member(7));
    expect(it.passes(2_000).feed.items).to.have.length(5);
    expect(it.feed.items.map(({ id }) => id).slice(3)).to.deep.equal([record(6).id, BATCH]);
    expect(it.feed.items[4]).to.include({ count: 4 });
    expect(it.feed).to.include({ isFollowing: true, cursorId: BATCH });
    it.press('k', 'k').comes(member(8)).passes(2_000);
    it.comes(member(9)).passes(2_000);
    expect(it.feed).to.include({ cursorId: record(2).id, unseen: 0 });
    // Nothing more is loaded once it has ended.
    expect(it.forgets().passes(10_000).asked('audit')).to.equal(0);
  });

  it('has its members in the details, and with a filter as rows', () => {
    const it = watching(member(3), member(4)).forgets().press('enter');
    expect(it.asked('members')).to.equal(1);
    expect(it.state.members?.records.map(({ id }) => id)).to.deep.equal([record(4).id, record(3).id]);
    it.press('escape', '/').types(`batch:${BATCH}`).press('enter');
    expect(it.feed.items.map(({ id }) => id)).to.deep.equal([record(3).id, record(4).id]);
  });

  it('is undone with u, after a question that says what it was', () => {
    const it = watching(member(3), member(4, { user: 'ana@laptop' })).press('u');
    expect(it.dialog.title).to.match(/^Undo: 2 × token\.revoke by .*ana@laptop.* in 127\.0\.0\.1:8080$/);
    expect(it.press('escape').daemon.made).to.deep.equal([]);
    it.press('u', 'enter');
    expect(it.daemon.made).to.have.length(1);
    expect(it.daemon.made[0]?.change).to.include({ what: 'undo', batch: BATCH });
    expect(it.says).to.match(/^Undone: 2 × token\.revoke/);
    it.press('U');
    expect(it.dialog.title).to.match(/^Redo: 2 × token\.revoke/);
  });

  it('is not undone with u if it cannot be', () => {
    for (const [more, words] of [
      [{ batch: null }, 'It was made without a batch ID, so it cannot be undone from here'],
      [{ action: 'cache.purge' }, 'cache.purge cannot be undone'],
      [{ outcome: 'denied' }, 'Nothing was changed, so there is nothing to undo'],
    ] as const) {
      const it = watching(member(3, more)).press('u');
      expect(it.says).to.equal(words);
      expect(it.top).to.equal(undefined);
    }
    expect(watching(member(3, { action: 'token.create' })).press('u').dialog.notes[0]?.words).to.contain('401');
  });
});
