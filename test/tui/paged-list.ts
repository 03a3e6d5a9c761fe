/** A list served like the management API: keyset pagination in both orders, with a cursor that names the row before a page. */
import type { PageResponse, PageRequest } from '../../tui/state/window.js';

export interface Row {
  id: string;
  key: number;
  version: number;
}

export class PagedList {
  #rows: Row[] = [];
  #made = 0;

  constructor(size: number) {
    for (let i = 0; i < size; i++) this.#rows.push(this.#row((i * 7919) % Math.max(1, size)));
    this.#sort();
  }

  get rows(): readonly Row[] {
    return this.#rows;
  }

  insert(key: number): Row {
    const row = this.#row(key);
    this.#rows.push(row);
    this.#sort();
    return row;
  }

  remove(index: number): Row | undefined {
    return this.#rows.splice(index, 1)[0];
  }

  /** Changes the sort key of a row, or another field of it. */
  update(index: number, key?: number): Row | undefined {
    const row = this.#rows[index];
    if (!row) return undefined;
    const changed = { ...row, key: key ?? row.key, version: row.version + 1 };
    this.#rows[index] = changed;
    this.#sort();
    return changed;
  }

  page({ end, cursor }: Pick<PageRequest, 'end' | 'cursor'>, limit: number): PageResponse<Row> {
    const at = cursor === null ? null : this.#placeOf(cursor);
    const isHead = end === 'head';
    const left = isHead ? this.#rows.length - (at?.after ?? 0) : (at?.before ?? this.#rows.length);
    const items = isHead
      ? this.#rows.slice(at?.after ?? 0, (at?.after ?? 0) + limit)
      : this.#rows.slice(Math.max(0, left - limit), left).reverse();
    const last = items.at(-1);
    return {
      items,
      next: last && left > limit ? JSON.stringify([last.key, last.id]) : null,
      total: this.#rows.length,
    };
  }

  /** Number of rows before the position of a cursor, and number of rows up to the end of its row. */
  #placeOf(cursor: string): { before: number; after: number } {
    const [key, id] = JSON.parse(cursor) as [number, string];
    let low = 0;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (byKey(this.#rows[middle]!, { key, id }) < 0) low = middle + 1;
      else high = middle;
    }
    return { before: low, after: this.#rows[low]?.id === id && this.#rows[low]?.key === key ? low + 1 : low };
  }

  #row(key: number): Row {
    this.#made += 1;
    // So that the order of ids differs from the order of creation.
    const id = `${((this.#made * 48271) % 2147483647).toString(16).padStart(8, '0')}-${this.#made}`;
    return { id, key, version: 0 };
  }

  #sort(): void {
    this.#rows.sort(byKey);
  }
}

const byKey = (a: Pick<Row, 'key' | 'id'>, b: Pick<Row, 'key' | 'id'>) =>
  a.key - b.key || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
