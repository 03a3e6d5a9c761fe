/**
 * Random histories of a window on a changing list: the cursor moves, pages are requested, and responses arrive late, in any order,
 * twice or never, with the list as it was at any time in between. The invariants hold throughout, and once all is settled the window
 * shows the list.
 */
import { expect } from 'chai';
import {
  invalidated,
  withPending,
  cursorRow,
  emptyWindow,
  failed,
  isViewLoaded,
  lengthOf,
  move,
  moveTo,
  pagesToRequest,
  PAGE_ROWS,
  type PageResponse,
  type PageRequest,
  received,
  rowAt,
  type Window,
} from '../../tui/state/window.js';
import type { Random } from '../support/model.js';
import { PagedList, type Row } from './paged-list.js';

export const MOST_ROWS = 3_000;

interface UnderWay {
  wanted: PageRequest;
  /** Null until the list was read for it. */
  answer: PageResponse<Row> | null;
}

/** Number of rows that may be inserted before the cursor's row between two reads without losing that row. */
const FOLLOWED_THROUGH = PAGE_ROWS;

export class WindowModel {
  readonly #random: Random;
  readonly list: PagedList;
  window: Window<Row>;
  rows: number;
  readonly #underWay: UnderWay[] = [];
  /** Failed for the window, but the response still arrives later. */
  readonly #late: UnderWay[] = [];
  /** The row that must stay under the cursor; null: any row. */
  #followed: string | null = null;
  #inserted = 0;

  constructor(random: Random, options: { size: number; rows: number }) {
    this.#random = random;
    this.list = new PagedList(options.size);
    this.rows = options.rows;
    this.window = emptyWindow<Row>('/things');
  }

  /** A random event: the list changes, a response arrives, or a key is pressed. */
  step(): void {
    const actions: (() => void)[] = [
      () => {
        this.#change();
      },
      () => {
        this.#ask();
      },
      () => {
        this.#ask();
      },
      () => {
        this.#answer();
      },
      () => {
        this.#answer();
      },
      () => {
        this.#deliver();
      },
      () => {
        this.#deliver();
      },
      () => {
        this.#deliver();
      },
      () => {
        this.#lose();
      },
      () => {
        this.window = invalidated(this.window);
      },
      () => {
        this.#press();
      },
    ];
    actions[this.#below(actions.length)]?.();
    this.check();
  }

  /** Invariants at any time. */
  check(): void {
    const { window, rows } = this;
    const length = lengthOf(window);
    expect(window.cursorIndex).to.be.within(0, Math.max(0, length - 1));
    expect(window.top).to.be.within(0, Math.max(0, length - rows));
    expect(window.cursorIndex).to.be.within(window.top, window.top + rows - 1);
    const known = knownRows(window);
    expect(new Set(known.used.map(({ id }) => id)).size, 'a row is known twice').to.equal(known.used.length);
    expect(known.all, 'rows in memory').to.be.below(MOST_ROWS);
    const wanted = pagesToRequest(window, rows);
    expect(wanted.length + window.pending.length, 'asked for at once').to.be.at.most(
      Math.max(2, window.pending.length),
    );
    if (wanted.length === 0 && window.pending.length === 0) expect(isViewLoaded(window, rows)).to.equal(true);
  }

  /** The list stops changing and everything is loaded again: then the window shows the list. */
  settle(): void {
    for (const one of this.#underWay.splice(0)) this.window = failed(this.window, one.wanted);
    this.#late.splice(0);
    this.window = invalidated(this.window);
    for (let i = 0; ; i++) {
      const wanted = pagesToRequest(this.window, this.rows);
      if (wanted.length === 0) break;
      // From one end to the other, and each page once more.
      expect(i, 'it never comes to rest').to.be.below(2 * Math.ceil(this.list.rows.length / PAGE_ROWS) + 40);
      this.window = withPending(this.window, wanted);
      if (this.#random() < 0.5) wanted.reverse();
      for (const one of wanted) {
        this.window = received(this.window, one, this.list.page(one, PAGE_ROWS), this.rows);
        this.check();
      }
    }
    this.#compare();
    this.#follow();
    this.#inserted = 0;
  }

  #compare(): void {
    const { window, rows, list } = this;
    const length = lengthOf(window);
    const shown = Array.from({ length: Math.min(rows, length - window.top) }, (_, i) => rowAt(window, window.top + i));
    expect(shown).to.have.length(Math.min(rows, list.rows.length));
    const from = list.rows.findIndex(({ id }) => id === shown[0]?.id);
    expect(shown, 'what is shown').to.deep.equal(list.rows.slice(Math.max(0, from), from + shown.length));
    if (shown.length > 0 && window.top === 0 && window.end === 'head') expect(from).to.equal(0);
    if (shown.length > 0 && window.top + shown.length === length && window.end === 'tail') {
      expect(from + shown.length).to.equal(list.rows.length);
    }
    expect(window.total).to.equal(list.rows.length);
    expect(window.cursorId).to.equal(cursorRow(window)?.id ?? null);
    if (this.#followed !== null && this.#inserted <= FOLLOWED_THROUGH) {
      expect(window.cursorId, 'the row under the cursor').to.equal(this.#followed);
    }
  }

  /** A deleted or moved row need not stay under the cursor. */
  #follow(): void {
    const row = cursorRow(this.window);
    const isThere = this.list.rows.some(({ id, key }) => id === row?.id && key === row.key);
    this.#followed = row && isThere ? row.id : null;
  }

  /** Jumps to an end and settles: then the window shows that end. */
  settleAt(where: 'first' | 'last'): void {
    // The first jump may follow a row that was at the end when it was loaded.
    for (let jump = 0; jump < 2; jump++) {
      this.window = moveTo(this.window, where, this.rows);
      this.#followed = null;
      this.settle();
    }
    const end = where === 'first' ? this.list.rows[0] : this.list.rows.at(-1);
    expect(this.window.cursorId, `the ${where} row`).to.equal(end?.id ?? null);
  }

  #press(): void {
    const { window, rows } = this;
    const random = this.#random;
    const signed = (by: number) => (random() < 0.5 ? by : -by);
    const pressed = [
      () => move(window, signed(1), rows),
      () => move(window, signed(1 + this.#below(5)), rows),
      () => move(window, signed(Math.ceil(rows / 2)), rows),
      () => move(window, signed(rows), rows),
      () => move(window, signed(this.#below(2_000)), rows),
      () => moveTo(window, 'first', rows),
      () => moveTo(window, 'last', rows),
      () => {
        this.rows = 1 + this.#below(80);
        return move(window, 0, this.rows);
      },
    ][this.#below(8)];
    this.window = pressed?.() ?? window;
    this.#follow();
  }

  #change(): void {
    const { list } = this;
    const any = () => this.#below(Math.max(1, list.rows.length));
    const anyKey = () => this.#below(Math.max(1, list.rows.length));
    const near = () => list.rows.findIndex(({ id }) => id === this.window.cursorId) + this.#below(9) - 4;
    const which = this.#random() < 0.5 ? any : near;
    for (let n = 1 + this.#below(4); n > 0; n--) {
      const choice = this.#below(5);
      if (choice === 0) {
        list.insert(anyKey());
        this.#inserted += 1;
      } else if (choice === 1) {
        list.insert(list.rows[which()]?.key ?? 0);
        this.#inserted += 1;
      } else if (choice === 2) {
        this.#touched(list.remove(Math.max(0, which())));
      } else if (choice === 3) {
        this.#touched(list.update(which(), anyKey()));
        this.#inserted += 1;
      } else {
        list.update(which());
      }
    }
  }

  #touched(row: Row | undefined): void {
    if (row?.id === this.#followed) this.#followed = null;
  }

  #ask(): void {
    const wanted = pagesToRequest(this.window, this.rows);
    this.window = withPending(this.window, wanted);
    this.#underWay.push(...wanted.map((one) => ({ wanted: one, answer: null })));
  }

  #answer(): void {
    const one = this.#underWay[this.#below(this.#underWay.length)];
    if (one) one.answer ??= this.list.page(one.wanted, PAGE_ROWS);
  }

  #deliver(): void {
    const from = this.#random() < 0.1 ? this.#late : this.#underWay;
    const [one] = from.splice(this.#below(from.length), 1);
    if (!one) return;
    const answer = one.answer ?? this.list.page(one.wanted, PAGE_ROWS);
    this.window = received(this.window, one.wanted, answer, this.rows);
    if (this.#random() < 0.1) this.#late.push({ ...one, answer });
  }

  #lose(): void {
    const [one] = this.#underWay.splice(this.#below(this.#underWay.length), 1);
    if (!one) return;
    this.window = failed(this.window, one.wanted);
    if (this.#random() < 0.5) this.#late.push(one);
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }
}

/** Rows in memory, and those of them that can be shown. */
export function knownRows<T extends { id: string }>({ head, tail, end }: Window<T>): { all: number; used: T[] } {
  const of = ({ pages, staleRows }: Window<T>['head']) => [...pages.flatMap(({ rows }) => rows ?? []), ...staleRows];
  const chains = { head: of(head), tail: of(tail) };
  return { all: chains.head.length + chains.tail.length, used: chains[end] };
}
