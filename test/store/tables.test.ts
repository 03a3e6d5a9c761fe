/** Type checks of INSERT and UPDATE. Code that must not compile is tested with `@ts-expect-error`: the build fails if it compiles. */
import { expect } from 'chai';
import type { Token } from '../../daemon/core/token.js';
import {
  type ColumnsOf,
  filledIn,
  flag,
  json,
  nullable,
  nullAs,
  number,
  text,
} from '../../daemon/store/sql/columns.js';
import type { Bind, SqlTransaction } from '../../daemon/store/sql/database.js';
import { sqlite } from '../../daemon/store/sql/dialect.js';
import { columnList, Table } from '../../daemon/store/sql/table.js';
import { TOKENS } from '../../daemon/store/sql/tables.js';

const columns = {
  id: text('id'),
  isOpen: flag('is_open'),
  note: nullAs('', text('note')),
  closedAtMs: nullable(number('closed_at')),
  details: nullable(json('details')),
  knocks: filledIn(number('knocks')),
};
const DOORS = new Table('doors', columns);
const door = { id: 'a', isOpen: true, note: null, closedAtMs: null, details: { height: 2 } };

describe('the columns of a table', () => {
  let sent: { sql: string; bind: Bind }[];
  const tx: SqlTransaction = {
    dialect: sqlite,
    select: () => Promise.resolve([]),
    execute: (sql, bind = {}) => {
      sent.push({ sql: sql.trim(), bind });
      return Promise.resolve(1);
    },
  };
  beforeEach(() => {
    sent = [];
  });

  it('are all inserted except those that the database fills in', async () => {
    await DOORS.insert(tx, door);
    expect(sent).to.deep.equal([
      {
        sql: 'INSERT INTO doors (id, is_open, note, closed_at, details) VALUES ($id_0, $is_open_0, $note_0, $closed_at_0, $details_0)',
        bind: { id_0: 'a', is_open_0: true, note_0: '', closed_at_0: null, details_0: '{"height":2}' },
      },
    ]);
  });

  it('are inserted for several rows at once, and as SQL expressions', async () => {
    await DOORS.insertAll(tx, [door, { ...door, id: 'b', note: 'left' }], 'ON CONFLICT DO NOTHING');
    expect(sent[0]?.sql).to.match(/ VALUES \(\$id_0, .*\), \(\$id_1, .*\) ON CONFLICT DO NOTHING$/);
    expect(sent[0]?.bind).to.include({ id_0: 'a', id_1: 'b', note_0: '', note_1: 'left' });
    await DOORS.insertOf(tx, { id: '$id', isOpen: '1', note: "''", closedAtMs: 'NULL', details: 'NULL' }, { id: 'c' });
    expect(sent[1]?.sql).to.match(/ VALUES \(\$id, 1, '', NULL, NULL\)$/);
  });

  it('are updated by their column names, for the rows that match', async () => {
    await DOORS.update(tx, { id: 'a', isOpen: true }, { isOpen: false, note: null });
    expect(sent).to.deep.equal([
      {
        sql: 'UPDATE doors SET is_open = $is_open, note = $note WHERE id = $where_id AND is_open = $where_is_open',
        bind: { is_open: false, note: '', where_id: 'a', where_is_open: true },
      },
    ]);
  });

  it('are read as they were written, however a driver returns booleans', () => {
    const shown = columnList(columns, 'd');
    expect(shown.list).to.equal('d.id, d.is_open, d.note, d.closed_at, d.details, d.knocks');
    const row = { id: 'a', is_open: 1, note: '', closed_at: null, details: '{"height":2}', knocks: 3 };
    expect(shown.of(row)).to.deep.equal({ ...door, knocks: 3 });
    expect(shown.of({ ...row, is_open: false, note: 'left' })).to.include({ isOpen: false, note: 'left' });
  });

  it('that are missing or unknown do not compile', () => {
    const never = [
      // @ts-expect-error -- `id` is forgotten
      () => DOORS.insert(tx, { isOpen: true, note: null, closedAtMs: null, details: null }),
      // @ts-expect-error -- there is no `colour`
      () => DOORS.insert(tx, { ...door, colour: 'red' }),
      // @ts-expect-error -- the database fills in `knocks`
      () => DOORS.insert(tx, { ...door, knocks: 1 }),
      // @ts-expect-error -- a flag is no number
      () => DOORS.insert(tx, { ...door, isOpen: 1 }),
      // @ts-expect-error -- `note` is forgotten in the second row
      () => DOORS.insertAll(tx, [door, { id: 'b', isOpen: true, closedAtMs: null, details: null }]),
      // @ts-expect-error -- `id` is forgotten
      () => DOORS.insertOf(tx, { isOpen: '1', note: "''", closedAtMs: 'NULL', details: 'NULL' }, {}),
      // @ts-expect-error -- there is no `colour`
      () => DOORS.update(tx, { id: 'a' }, { colour: 'red' }),
      // @ts-expect-error -- there is no `colour` to look for
      () => DOORS.update(tx, { colour: 'red' }, { isOpen: true }),
      // @ts-expect-error -- a property of the core has no column
      () => ({ id: text('id') }) satisfies ColumnsOf<Pick<Token, 'id' | 'name'>>,
      // @ts-expect-error -- a column has no property in the core
      () => ({ id: text('id'), more: text('more') }) satisfies ColumnsOf<Pick<Token, 'id'>>,
      // @ts-expect-error -- the core allows null, the column does not
      () => ({ name: text('name') }) satisfies ColumnsOf<Pick<Token, 'name'>>,
    ];
    expect(never).to.not.be.empty;
    // The public fields of a token are not enough to store one, and its usage counts cannot be set.
    const shown = {} as Token;
    // @ts-expect-error -- neither digest nor name_folded, but counts
    expect(() => TOKENS.insert(tx, shown)).to.be.a('function');
  });
});
