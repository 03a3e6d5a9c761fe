import { expect } from 'chai';
import {
  aged,
  asked,
  cursorRow,
  emptyWindow,
  failed,
  isHeardOf,
  isSettled,
  lengthOf,
  move,
  moveTo,
  needed,
  PAGE_ROWS,
  received,
  rowAt,
  updated,
  type Window,
} from '../../tui/state/window.js';
import { PagedList, type Row } from './paged-list.js';
import { knownRows, MOST_ROWS } from './window-model.js';

const ROWS = 20;

describe('a window on a list', () => {
  let list: PagedList;
  let window: Window<Row>;

  beforeEach(() => {
    open(250);
  });

  function open(size: number, { isCounted = true, isReversible = true } = {}): void {
    list = new PagedList(size, isCounted);
    window = emptyWindow('/things', isReversible);
  }
  /** Asks and answers until nothing is needed. @returns which pages were asked for. */
  function load(rows = ROWS): string[] {
    const pages: string[] = [];
    for (;;) {
      const wanted = needed(window, rows);
      if (wanted.length === 0) return pages;
      window = asked(window, wanted);
      for (const one of wanted) window = received(window, one, list.page(one, PAGE_ROWS), rows);
      pages.push(...wanted.map(({ end, page }) => `${end} ${page}`));
    }
  }
  function refresh(): string[] {
    window = aged(window);
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

  it('asks for the first page first, and shows it', () => {
    expect(isHeardOf(window)).to.equal(false);
    expect(cursorRow(window)).to.equal(undefined);
    expect(load()).to.deep.equal(['head 0']);
    expect(isHeardOf(window)).to.equal(true);
    expect(shown()).to.deep.equal(list.rows.slice(0, ROWS));
    expect(window).to.include({ cursorIndex: 0, cursorId: list.rows[0]!.id, total: 250 });
    expect(lengthOf(window)).to.equal(250);
  });

  it('of an empty list has no row, and asks for nothing but what may have come', () => {
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

  it('knows nothing of what was not read yet, and counts it', () => {
    load();
    expect(rowAt(window, 99)).to.deep.equal(list.rows[99]);
    expect(rowAt(window, 100)).to.equal(undefined);
    expect(rowAt(window, 249)).to.equal(undefined);
    expect(rowAt(window, -1)).to.equal(undefined);
  });

  it('reads on before the cursor comes to the end of what is known', () => {
    load();
    go(80);
    expect(load()).to.deep.equal(['head 1']);
    go(30);
    expect(isSettled(window, ROWS)).to.equal(true);
  });

  it('reads its way to where the cursor went', () => {
    load();
    go(240);
    expect(isSettled(window, ROWS)).to.equal(false);
    expect(window.cursorId).to.equal(null);
    expect(load()).to.deep.equal(['head 1', 'head 2']);
    expect(cursorRow(window)).to.deep.equal(list.rows[240]);
    expect(window.cursorId).to.equal(list.rows[240]!.id);
  });

  it('keeps two rows in sight on both sides of the cursor, where there are any', () => {
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

  it('keeps the cursor in sight whatever the height becomes, a single row included', () => {
    load();
    go(15);
    for (const rows of [1, 2, 3, 60, 5, 1_000]) {
      window = move(window, 0, rows);
      expect(window.cursorIndex).to.equal(15);
      expect(window.top).to.be.within(Math.max(0, 15 - rows + 1), 15);
    }
    expect(window.top).to.equal(0);
  });

  describe('sent to the end', () => {
    it('reads the reverse order, one page', () => {
      load();
      goTo('last');
      expect(window).to.include({ cursorIndex: 249, top: 230 });
      expect(load()).to.deep.equal(['tail 0']);
      expect(shown()).to.deep.equal(list.rows.slice(230));
      expect(window.cursorId).to.equal(list.rows[249]!.id);
    });

    it('before anything was heard of the list, finds it all the same', () => {
      goTo('last');
      expect(load()).to.deep.equal(['tail 0']);
      expect(cursorRow(window)).to.deep.equal(list.rows[249]);
      expect(window.top).to.equal(230);
    });

    it('asks for nothing where all is known', () => {
      open(60);
      load();
      goTo('last');
      expect(load()).to.deep.equal([]);
      expect(shown()).to.deep.equal(list.rows.slice(40));
    });

    it('and back at the beginning, shows at once what was known of it', () => {
      load();
      const first = shown();
      goTo('last');
      load();
      goTo('first');
      expect(shown()).to.deep.equal(first);
      expect(window).to.include({ cursorIndex: 0, top: 0 });
      expect(load()).to.deep.equal([]);
    });

    it('walks up to the very first row without a gap', () => {
      load();
      goTo('last');
      load();
      const seen = [...shown()].reverse();
      while (window.cursorIndex > 0) {
        go(-ROWS);
        load();
        seen.push(
          ...shown()
            .reverse()
            .filter((row) => !seen.includes(row)),
        );
      }
      expect(seen.reverse()).to.deep.equal(list.rows);
    });

    it('stays there while rows come and go before it', () => {
      load();
      goTo('last');
      load();
      for (let i = 0; i < 5; i++) list.insert(0);
      list.remove(100);
      refresh();
      expect(window).to.include({ cursorIndex: 253, cursorId: list.rows[253]!.id, total: 254 });
      expect(shown()).to.deep.equal(list.rows.slice(-ROWS));
    });

    it('of a list that cannot be read from there, walks', () => {
      open(250, { isReversible: false });
      load();
      goTo('last');
      expect(load()).to.deep.equal(['head 1', 'head 2']);
      expect(cursorRow(window)).to.deep.equal(list.rows[249]);
    });
  });

  describe('on a list that changes', () => {
    beforeEach(() => {
      load();
      go(10);
    });

    it('looks again at the pages in view, and at no other', () => {
      expect(refresh()).to.deep.equal(['head 0']);
      go(88);
      load();
      expect(refresh()).to.have.members(['head 0', 'head 1']);
      go(40);
      expect(refresh()).to.deep.equal(['head 1']);
    });

    it('keeps the row under the cursor, and its place on the screen, when rows come before it', () => {
      go(30);
      const { cursorId, cursorIndex, top } = window;
      for (let i = 0; i < 7; i++) list.insert(0);
      refresh();
      expect(window).to.include({ cursorId, cursorIndex: cursorIndex + 7, top: top + 7 });
      expect(shown()).to.deep.equal(list.rows.slice(top + 7, top + 7 + ROWS));
    });

    it('keeps it when rows before it go', () => {
      go(30);
      const { cursorId, cursorIndex } = window;
      for (let i = 0; i < 7; i++) list.remove(0);
      refresh();
      expect(window).to.include({ cursorId, cursorIndex: cursorIndex - 7 });
    });

    it('keeps it when it goes elsewhere in view', () => {
      const { cursorId } = window;
      list.update(10, 15.5);
      refresh();
      expect(window).to.include({ cursorId, cursorIndex: 15 });
    });

    it('puts the next row under the cursor when its row is gone', () => {
      const next = list.rows[11]!;
      list.remove(10);
      refresh();
      expect(window).to.include({ cursorIndex: 10, cursorId: next.id });
    });

    it('puts the last row under the cursor when all behind it are gone', () => {
      open(5);
      load();
      go(4);
      list.remove(4);
      list.remove(3);
      refresh();
      expect(window).to.include({ cursorIndex: 2, cursorId: list.rows[2]!.id });
    });

    it('keeps the row under the cursor when a page before it grows beyond it', () => {
      go(85); // Row 95, on the first page.
      load();
      const { cursorId } = window;
      for (let i = 0; i < 20; i++) list.insert(0);
      refresh();
      expect(window).to.include({ cursorId, cursorIndex: 115 });
      expect(shown()).to.deep.equal(list.rows.slice(window.top, window.top + ROWS));
    });

    it('shows what was known of the next page until it was read anew', () => {
      go(88);
      load();
      list.insert(0);
      window = aged(window);
      const first = { ...needed(window, ROWS)[0]! };
      window = asked(window, [first]);
      window = received(window, first, list.page(first, PAGE_ROWS), ROWS);
      expect(isSettled(window, ROWS)).to.equal(false);
      expect(shown()).to.deep.equal(list.rows.slice(window.top, window.top + ROWS));
      load();
      expect(isSettled(window, ROWS)).to.equal(true);
    });

    it('shows a row once that went from one page to another', () => {
      go(88);
      load();
      list.remove(50);
      list.update(104, 50); // To the first page; its last row is the same as before.
      window = aged(window);
      const [first] = needed(window, ROWS);
      window = asked(window, [first!]);
      window = received(window, first!, list.page(first!, PAGE_ROWS), ROWS);
      const ids = knownRows(window).used.map(({ id }) => id);
      expect(new Set(ids).size).to.equal(ids.length);
    });

    it('shows what a change has answered at once', () => {
      const row = { ...cursorRow(window)!, version: 7 };
      window = updated(window, row);
      expect(cursorRow(window)).to.equal(row);
      expect(updated(window, { ...row, id: 'unknown' }).head).to.equal(window.head);
    });

    it('ends where the last page ends, whatever was counted', () => {
      list.page = (wanted, limit) => ({ ...PagedList.prototype.page.call(list, wanted, limit), total: 1_000 });
      refresh();
      expect(lengthOf(window)).to.equal(1_000);
      go(400);
      load();
      expect(lengthOf(window)).to.equal(250);
      expect(window).to.include({ cursorIndex: 249, top: 230, total: 1_000 });
    });
  });

  describe('on a list that nobody counts', () => {
    beforeEach(() => {
      open(250, { isCounted: false, isReversible: false });
      load();
    });

    it('is one row longer than what is known, until the end is', () => {
      expect(window.total).to.equal(null);
      expect(lengthOf(window)).to.equal(101);
      expect(rowAt(window, 100)).to.equal(undefined);
      go(1_000);
      load();
      expect(lengthOf(window)).to.equal(201);
      go(1_000);
      load();
      expect(lengthOf(window)).to.equal(250);
    });

    it('goes as far as is known, and on from there', () => {
      for (const index of [100, 200, 249, 249]) {
        goTo('last');
        load();
        expect(window.cursorIndex).to.equal(index);
        expect(cursorRow(window)).to.deep.equal(list.rows[index]);
      }
    });
  });

  describe('and the way to the daemon', () => {
    it('never has more than two pages on their way, and none twice', () => {
      load();
      go(98);
      load();
      window = aged(window);
      const wanted = needed(window, ROWS);
      expect(wanted).to.have.length(2);
      window = asked(window, wanted.slice(0, 1));
      expect(needed(window, ROWS).map(({ page }) => page)).to.deep.equal([1]);
      window = asked(window, needed(window, ROWS));
      window = aged(window);
      expect(needed(window, ROWS)).to.deep.equal([]);
    });

    it('asks again for what has failed', () => {
      const [wanted] = needed(window, ROWS);
      window = asked(window, [wanted!]);
      expect(needed(window, ROWS)).to.deep.equal([]);
      window = failed(window, wanted!);
      expect(needed(window, ROWS)).to.have.length(1);
    });

    it('asks again for what was answered before it was known to be old', () => {
      load();
      window = aged(window);
      const wanted = needed(window, ROWS);
      window = asked(window, wanted);
      window = aged(window);
      window = received(window, wanted[0]!, list.page(wanted[0]!, PAGE_ROWS), ROWS);
      expect(needed(window, ROWS)).to.have.length(1);
    });

    it('takes an answer once, and none that it gave up or that is for another list', () => {
      const [wanted] = needed(window, ROWS);
      const answer = list.page(wanted!, PAGE_ROWS);
      expect(received(window, wanted!, answer, ROWS), 'not asked for').to.equal(window);
      const waiting = asked(window, [wanted!]);
      const other = { ...wanted!, of: '/others' };
      expect(received(waiting, other, answer, ROWS), 'of another list').to.equal(waiting);
      const given = failed(waiting, wanted!);
      expect(received(given, wanted!, answer, ROWS), 'given up').to.equal(given);
      const taken = received(waiting, wanted!, answer, ROWS);
      expect(received(taken, wanted!, list.page(wanted!, 1), ROWS), 'a second time').to.equal(taken);
    });

    it('ignores an answer for a page that begins elsewhere now', () => {
      load();
      go(98);
      load();
      window = aged(window);
      const [first, second] = needed(window, ROWS);
      const old = list.page(second!, PAGE_ROWS);
      list.insert(0);
      window = asked(window, [first!, second!]);
      window = received(window, first!, list.page(first!, PAGE_ROWS), ROWS);
      const { head } = window;
      window = received(window, second!, old, ROWS);
      expect(window.head).to.equal(head);
      expect(window.asked).to.deep.equal([]);
      load();
      expect(shown()).to.deep.equal(list.rows.slice(window.top, window.top + ROWS));
    });
  });

  it('walks through 100,000 rows and back with few of them in memory', function () {
    this.timeout(60_000);
    open(100_000);
    load();
    let most = 0;
    for (const by of [400, -400]) {
      while (window.cursorIndex > 0 || by > 0) {
        go(by);
        load();
        expect(isSettled(window, ROWS)).to.equal(true);
        most = Math.max(most, knownRows(window).all);
        if (window.cursorIndex === 99_999) break;
      }
    }
    expect(shown()).to.deep.equal(list.rows.slice(0, ROWS));
    expect(most).to.be.below(MOST_ROWS);
  });

  it('is never changed, each is another one', () => {
    const rows = 20;
    const frozen = (it: Window<Row>) => deeplyFrozen(it);
    window = frozen(window);
    for (const by of [0, 95, 120, -60, -150]) {
      window = frozen(aged(frozen(move(window, by, rows))));
      list.insert(by);
      for (let wanted = needed(window, rows); wanted.length > 0; wanted = needed(window, rows)) {
        window = frozen(asked(window, wanted));
        for (const one of wanted) window = frozen(received(window, one, list.page(one, PAGE_ROWS), rows));
      }
    }
    window = frozen(moveTo(window, 'last', rows));
    expect(frozen(updated(window, list.rows[0]!))).not.to.equal(window);
  });
});

function deeplyFrozen<T>(it: T): T {
  if (typeof it === 'object' && it !== null && !Object.isFrozen(it)) {
    Object.freeze(it);
    Object.values(it).forEach(deeplyFrozen);
  }
  return it;
}
