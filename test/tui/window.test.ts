import { expect } from 'chai';
import {
  invalidated,
  withPending,
  cursorRow,
  emptyWindow,
  failed,
  isLoaded,
  isViewLoaded,
  lengthOf,
  move,
  moveTo,
  pagesToRequest,
  PAGE_ROWS,
  received,
  rowAt,
  updated,
  type Window,
} from '../../tui/state/window.js';
import { PagedList, type Row } from './paged-list.js';
import { knownRows, MOST_ROWS } from './window-model.js';

const ROWS = 20;

describe('list window', () => {
  let list: PagedList;
  let window: Window<Row>;

  beforeEach(() => {
    open(250);
  });

  function open(size: number): void {
    list = new PagedList(size);
    window = emptyWindow('/things');
  }
  /** Requests and delivers pages until none is needed. @returns the requested pages. */
  function load(rows = ROWS): string[] {
    const pages: string[] = [];
    for (;;) {
      const wanted = pagesToRequest(window, rows);
      if (wanted.length === 0) return pages;
      window = withPending(window, wanted);
      for (const one of wanted) window = received(window, one, list.page(one, PAGE_ROWS), rows);
      pages.push(...wanted.map(({ end, page }) => `${end} ${page}`));
    }
  }
  function refresh(): string[] {
    window = invalidated(window);
    return load();
  }
  const shown = (rows = ROWS) => {
    const count = Math.min(rows, lengthOf(window) - window.top);
    return Array.from({ length: count }, (_, i) => rowAt(window, window.top + i));
  };
  const go = (by: number) => {
    window = move(window, by, ROWS);
  };
  const goTo = (where: 'first' | 'last') => {
    window = moveTo(window, where, ROWS);
  };

  it('requests the first page first, and shows it', () => {
    expect(isLoaded(window)).to.equal(false);
    expect(cursorRow(window)).to.equal(undefined);
    expect(load()).to.deep.equal(['head 0']);
    expect(isLoaded(window)).to.equal(true);
    expect(shown()).to.deep.equal(list.rows.slice(0, ROWS));
    expect(window).to.include({ cursorIndex: 0, cursorId: list.rows[0]!.id, total: 250 });
    expect(lengthOf(window)).to.equal(250);
  });

  it('of an empty list has no rows, and requests only refreshes', () => {
    open(0);
    expect(load()).to.deep.equal(['head 0']);
    expect(lengthOf(window)).to.equal(0);
    expect(cursorRow(window)).to.equal(undefined);
    go(1);
    goTo('last');
    expect(window).to.include({ cursorIndex: 0, top: 0, cursorId: null });
    const row = list.insert(1);
    expect(refresh()).to.deep.equal(['head 0']);
    expect(window.cursorId).to.equal(row.id);
  });

  it('counts rows that are not loaded, and has no data for them', () => {
    load();
    expect(rowAt(window, 99)).to.deep.equal(list.rows[99]);
    expect(rowAt(window, 100)).to.equal(undefined);
    expect(rowAt(window, 249)).to.equal(undefined);
    expect(rowAt(window, -1)).to.equal(undefined);
  });

  it('loads more before the cursor reaches the end of the loaded rows', () => {
    load();
    go(80);
    expect(load()).to.deep.equal(['head 1']);
    go(30);
    expect(isViewLoaded(window, ROWS)).to.equal(true);
  });

  it('keeps the newest total when a response to an earlier refresh arrives late', () => {
    load();
    go(80);
    const late = pagesToRequest(window, ROWS);
    expect(late).to.have.length(1);
    window = withPending(window, late);
    const responses = late.map((one) => [one, list.page(one, PAGE_ROWS)] as const);
    list.insert(list.rows.length);
    expect(refresh()).to.include('head 0');
    expect(window.total).to.equal(251);
    for (const [one, page] of responses) window = received(window, one, page, ROWS);
    expect(window.total).to.equal(251);
  });

  it('loads the pages up to the cursor', () => {
    load();
    go(240);
    expect(isViewLoaded(window, ROWS)).to.equal(false);
    expect(window.cursorId).to.equal(null);
    expect(load()).to.deep.equal(['head 1', 'head 2']);
    expect(cursorRow(window)).to.deep.equal(list.rows[240]);
    expect(window.cursorId).to.equal(list.rows[240]!.id);
  });

  it('keeps two rows visible on both sides of the cursor, where there are any', () => {
    load();
    go(17);
    expect(window).to.include({ cursorIndex: 17, top: 0 });
    go(1);
    expect(window).to.include({ cursorIndex: 18, top: 1 });
    go(20);
    expect(window).to.include({ cursorIndex: 38, top: 21 });
    go(-15);
    expect(window).to.include({ cursorIndex: 23, top: 21 });
    go(-1);
    expect(window).to.include({ cursorIndex: 22, top: 20 });
    go(-1_000);
    expect(window).to.include({ cursorIndex: 0, top: 0 });
    go(1_000);
    expect(window).to.include({ cursorIndex: 249, top: 230 });
  });

  describe('at the end of the list', () => {
    it('loads one page in reverse order', () => {
      load();
      goTo('last');
      expect(window).to.include({ cursorIndex: 249, top: 230 });
      expect(load()).to.deep.equal(['tail 0']);
      expect(shown()).to.deep.equal(list.rows.slice(230));
      expect(window.cursorId).to.equal(list.rows[249]!.id);
    });

    it('finds the end before the first response', () => {
      goTo('last');
      expect(load()).to.deep.equal(['tail 0']);
      expect(cursorRow(window)).to.deep.equal(list.rows[249]);
      expect(window.top).to.equal(230);
    });

    it('requests nothing if everything is loaded', () => {
      open(60);
      load();
      goTo('last');
      expect(load()).to.deep.equal([]);
      expect(shown()).to.deep.equal(list.rows.slice(40));
    });

    it('and back at the start, shows the known rows immediately', () => {
      load();
      const first = shown();
      goTo('last');
      load();
      goTo('first');
      expect(shown()).to.deep.equal(first);
      expect(window).to.include({ cursorIndex: 0, top: 0 });
      expect(load()).to.deep.equal([]);
    });
  });

  describe('on a changing list', () => {
    beforeEach(() => {
      load();
      go(10);
    });

    it('reloads the pages in view only', () => {
      expect(refresh()).to.deep.equal(['head 0']);
      go(88);
      load();
      expect(refresh()).to.have.members(['head 0', 'head 1']);
      go(40);
      expect(refresh()).to.deep.equal(['head 1']);
    });

    it('keeps the cursor on its row and the row in place when rows are inserted before it', () => {
      go(30);
      const { cursorId, cursorIndex, top } = window;
      for (let i = 0; i < 7; i++) list.insert(0);
      refresh();
      expect(window).to.include({ cursorId, cursorIndex: cursorIndex + 7, top: top + 7 });
      expect(shown()).to.deep.equal(list.rows.slice(top + 7, top + 7 + ROWS));
    });

    it('keeps the cursor on its row when the row moves within the view', () => {
      const { cursorId } = window;
      list.update(10, 15.5);
      refresh();
      expect(window).to.include({ cursorId, cursorIndex: 15 });
    });

    it('moves the cursor to the next row when its row is removed', () => {
      const next = list.rows[11]!;
      list.remove(10);
      refresh();
      expect(window).to.include({ cursorIndex: 10, cursorId: next.id });
    });

    it('moves the cursor to the last row when all later rows are removed', () => {
      open(5);
      load();
      go(4);
      list.remove(4);
      list.remove(3);
      refresh();
      expect(window).to.include({ cursorIndex: 2, cursorId: list.rows[2]!.id });
    });

    it('shows the old rows of the next page until it is loaded again', () => {
      go(88);
      load();
      list.insert(0);
      window = invalidated(window);
      const first = { ...pagesToRequest(window, ROWS)[0]! };
      window = withPending(window, [first]);
      window = received(window, first, list.page(first, PAGE_ROWS), ROWS);
      expect(isViewLoaded(window, ROWS)).to.equal(false);
      expect(shown()).to.deep.equal(list.rows.slice(window.top, window.top + ROWS));
      load();
      expect(isViewLoaded(window, ROWS)).to.equal(true);
    });

    it('shows the response to a change immediately', () => {
      const row = { ...cursorRow(window)!, version: 7 };
      window = updated(window, row);
      expect(cursorRow(window)).to.equal(row);
      expect(updated(window, { ...row, id: 'unknown' }).head).to.equal(window.head);
    });

    it('ends with the last page, whatever the total was', () => {
      list.page = (wanted, limit) => ({ ...PagedList.prototype.page.call(list, wanted, limit), total: 1_000 });
      refresh();
      expect(lengthOf(window)).to.equal(1_000);
      go(400);
      load();
      expect(lengthOf(window)).to.equal(250);
      expect(window).to.include({ cursorIndex: 249, top: 230, total: 1_000 });
    });
  });

  describe('page requests', () => {
    it('are limited to two in flight, and never sent twice', () => {
      load();
      go(98);
      load();
      window = invalidated(window);
      const wanted = pagesToRequest(window, ROWS);
      expect(wanted).to.have.length(2);
      window = withPending(window, wanted.slice(0, 1));
      expect(pagesToRequest(window, ROWS).map(({ page }) => page)).to.deep.equal([1]);
      window = withPending(window, pagesToRequest(window, ROWS));
      window = invalidated(window);
      expect(pagesToRequest(window, ROWS)).to.deep.equal([]);
    });

    it('are repeated after a failure', () => {
      const [wanted] = pagesToRequest(window, ROWS);
      window = withPending(window, [wanted!]);
      expect(pagesToRequest(window, ROWS)).to.deep.equal([]);
      window = failed(window, wanted!);
      expect(pagesToRequest(window, ROWS)).to.have.length(1);
    });

    it('are repeated if their page was marked as outdated meanwhile', () => {
      load();
      window = invalidated(window);
      const wanted = pagesToRequest(window, ROWS);
      window = withPending(window, wanted);
      window = invalidated(window);
      window = received(window, wanted[0]!, list.page(wanted[0]!, PAGE_ROWS), ROWS);
      expect(pagesToRequest(window, ROWS)).to.have.length(1);
    });

    it('are completed once; responses after a failure or for another list are ignored', () => {
      const [wanted] = pagesToRequest(window, ROWS);
      const answer = list.page(wanted!, PAGE_ROWS);
      expect(received(window, wanted!, answer, ROWS), 'not asked for').to.equal(window);
      const waiting = withPending(window, [wanted!]);
      const other = { ...wanted!, of: '/others' };
      expect(received(waiting, other, answer, ROWS), 'of another list').to.equal(waiting);
      const given = failed(waiting, wanted!);
      expect(received(given, wanted!, answer, ROWS), 'given up').to.equal(given);
      const taken = received(waiting, wanted!, answer, ROWS);
      expect(received(taken, wanted!, list.page(wanted!, 1), ROWS), 'a second time').to.equal(taken);
    });
  });

  it('moves through 100,000 rows and back with few of them in memory', function () {
    this.timeout(60_000);
    open(100_000);
    load();
    let most = 0;
    for (const by of [400, -400]) {
      while (window.cursorIndex > 0 || by > 0) {
        go(by);
        load();
        expect(isViewLoaded(window, ROWS)).to.equal(true);
        most = Math.max(most, knownRows(window).all);
        if (window.cursorIndex === 99_999) break;
      }
    }
    expect(shown()).to.deep.equal(list.rows.slice(0, ROWS));
    expect(most).to.be.below(MOST_ROWS);
  });
});
