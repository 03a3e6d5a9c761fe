/** What several pages are made of. */
import type { ReactNode } from 'react';
import { Link } from './frame.js';

export interface Column<Row> {
  title: string;
  /** Numbers stand at the right. */
  isNumber?: boolean;
  show: (row: Row) => ReactNode;
}

export interface TableProps<Row> {
  id: string;
  /** What it lists, for who does not see it. */
  label: string;
  /** The first is what a row is about. */
  columns: readonly [Column<Row>, ...Column<Row>[]];
  rows: readonly Row[];
  /** A box to mark a row with, of a form around the table. */
  mark?: (row: Row) => ReactNode;
  keyOf: (row: Row) => string;
}

/** Where there is no room for columns, each row becomes a card whose fields say what they are. */
export function Table<Row>({ id, label, columns, rows, mark, keyOf }: TableProps<Row>) {
  const [first, ...rest] = columns;
  const look = ({ isNumber }: Column<Row>) => (isNumber ? 'number' : undefined);
  return (
    <table id={id} data-live="" aria-label={label}>
      <thead>
        <tr>
          {mark && (
            <th scope="col">
              <span className="unseen">Mark</span>
            </th>
          )}
          {columns.map((column) => (
            <th key={column.title} scope="col" className={look(column)}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {mark && (
              <td data-label="Mark" className="box">
                {mark(row)}
              </td>
            )}
            <th scope="row">{first.show(row)}</th>
            {rest.map((column) => (
              <td key={column.title} data-label={column.title} className={look(column)}>
                <span>{column.show(row)}</span>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** @param query that of the page at hand; the cursor of the next takes its place in it. */
export function Paging({ to, query, next }: { to: string; query: URLSearchParams; next: string | null }) {
  const isFirst = !query.has('cursor');
  if (isFirst && next === null) return null;
  const first = new URLSearchParams(query);
  first.delete('cursor');
  const following = new URLSearchParams(first);
  if (next !== null) following.set('cursor', next);
  const at = (params: URLSearchParams) => (params.size === 0 ? to : `${to}?${params.toString()}`);
  return (
    <nav className="paging" aria-label="More">
      {isFirst ? null : <Link to={at(first)}>First page</Link>}
      {next === null ? null : (
        <Link to={at(following)} rel="next" className="next">
          Next page
        </Link>
      )}
    </nav>
  );
}

/** The list as files, with the filter of the page. */
export function Exports({ to, query }: { to: string; query: URLSearchParams }) {
  const at = (format: string) => {
    const params = new URLSearchParams(query);
    params.delete('cursor');
    params.set('format', format);
    return `${to}?${params.toString()}`;
  };
  return (
    <p className="exports">
      Export: <Link to={at('csv')}>CSV</Link> <Link to={at('json')}>JSON</Link>
    </p>
  );
}

/** There is nothing to show: what it would be, and what to do. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export interface Fact {
  name: string;
  value: ReactNode;
}

/** @param facts null for one that is none here. */
export function Facts({ id, facts }: { id: string; facts: readonly (Fact | null)[] }) {
  return (
    <dl className="facts" id={id} data-live="">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact.name}>
              <dt>{fact.name}</dt>
              <dd>{fact.value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** Why something was not done. */
export function Refused({ why }: { why: string | null }) {
  return why === null ? null : (
    <p className="notice bad" role="alert">
      {why}
    </p>
  );
}

/** What was done just now. */
export function Done({ what }: { what: string | null }) {
  return what === null ? null : (
    <p className="notice good" role="status">
      {what}
    </p>
  );
}

/** The same thing on the command line. */
export function OnCommandLine({ line }: { line: string }) {
  return (
    <p className="command">
      <span>On the command line</span> <code>{line}</code>
    </p>
  );
}
