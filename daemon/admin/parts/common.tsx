/** Components that several pages share. */
import type { ReactNode } from 'react';
import type { WireProject } from '../../api/contract.js';
import { escapeBidi } from './formats.js';
import { Link } from './frame.js';

export interface TableColumn<Row> {
  title: string;
  /** Numbers are right-aligned. */
  isNumber?: boolean | undefined;
  /** Its texts stay on one line. */
  isWhole?: boolean | undefined;
  /** The orders of the list by this column; the first one is chosen first. */
  orders?: readonly Order[] | undefined;
  show: (row: Row) => ReactNode;
}

export interface Order {
  /** In the query of the page. */
  name: string;
  direction: 'ascending' | 'descending';
}

/** How a list is sorted. */
export interface Sorting {
  current: string;
  /** The page in another order. */
  linkTo: (order: string) => string;
}

/** The same list in another order. @param query of the page: an order has cursors of its own. */
export const sortingOf = (page: string, query: URLSearchParams, current: string): Sorting => ({
  current,
  linkTo: (order) => {
    const params = new URLSearchParams(query);
    params.delete('cursor');
    params.set('sort', order);
    return `${page}?${params.toString()}`;
  },
});

export interface TableProps<Row> {
  id: string;
  /** Label for screen readers. */
  label: string;
  /** The first column is the row header. */
  columns: readonly TableColumn<Row>[];
  rows: readonly Row[];
  /** Checkbox that selects the row in the form around the table. */
  mark?: (row: Row) => ReactNode;
  keyOf: (row: Row) => string;
  /** What a row is. The script counts new ones. */
  noun?: string;
  sorting?: Sorting;
}

/** What the page of a list shows around its rows. */
export interface ListProps {
  /** The cursor of the next page. */
  next: string | null;
  query: URLSearchParams;
  /** Error message if the query is invalid. */
  refused: string | null;
}

/** A list with a filter for projects. */
export interface FilteredListProps extends ListProps {
  projects: readonly WireProject[];
}

/** A table. On narrow screens each row becomes a card with labelled fields. */
export function Table<Row>({ id, label, columns, rows, mark, keyOf, noun = 'row', sorting }: TableProps<Row>) {
  const look = ({ isNumber, isWhole }: TableColumn<Row>) => (isNumber ? 'number' : isWhole ? 'whole' : undefined);
  return (
    <table id={id} data-live="" data-noun={noun} aria-label={label}>
      <thead>
        <tr>
          {mark && (
            <th scope="col">
              <span className="unseen">Select</span>
            </th>
          )}
          {columns.map((column) => (
            <Header key={column.title} column={column} look={look(column)} sorting={sorting} />
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} data-key={keyOf(row)}>
            {mark && (
              <td data-label="Select" className="box">
                {mark(row)}
              </td>
            )}
            {columns.map((column, at) =>
              at === 0 ? (
                <th key={column.title} scope="row">
                  {column.show(row)}
                </th>
              ) : (
                <td key={column.title} data-label={column.title} className={look(column)}>
                  <span>{column.show(row)}</span>
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface HeaderProps<Row> {
  column: TableColumn<Row>;
  look: string | undefined;
  sorting: Sorting | undefined;
}

/** The header of a column. If the list can be sorted by it, it is a link. */
function Header<Row>({ column: { title, orders }, look, sorting }: HeaderProps<Row>) {
  const [first, ...others] = sorting ? (orders ?? []) : [];
  if (!first || !sorting) {
    return (
      <th scope="col" className={look}>
        {title}
      </th>
    );
  }
  const current = [first, ...others].find(({ name }) => name === sorting.current);
  const next = current === first ? (others[0] ?? first) : first;
  return (
    <th scope="col" className={look} aria-sort={current?.direction}>
      <Link to={sorting.linkTo(next.name)} className="sort">
        {title}
        {current && <span aria-hidden="true">{current.direction === 'ascending' ? ' ▲' : ' ▼'}</span>}
      </Link>
    </th>
  );
}

/** A table with many columns. It scrolls sideways, so it can have the focus. */
export function WideTable<Row>(props: TableProps<Row>) {
  return (
    <div className="wide" tabIndex={0} role="region" aria-label={`${props.label}, scrollable`}>
      <Table {...props} />
    </div>
  );
}

/** @param query of the current page; the link to the next page replaces its cursor. */
export function Paging({ to, query, next }: { to: string; query: URLSearchParams; next: string | null }) {
  const isFirst = !query.has('cursor');
  if (isFirst && next === null) return null;
  const first = new URLSearchParams(query);
  first.delete('cursor');
  const following = new URLSearchParams(first);
  if (next !== null) following.set('cursor', next);
  const at = (params: URLSearchParams) => (params.size === 0 ? to : `${to}?${params.toString()}`);
  return (
    <nav className="paging" aria-label="Pagination">
      {isFirst ? null : <Link to={at(first)}>First page</Link>}
      {next === null ? null : (
        <Link to={at(following)} rel="next" className="next">
          Next page
        </Link>
      )}
    </nav>
  );
}

/** Links to the same page with another choice. */
export function ChoiceLinks({ label, links }: { label: string; links: readonly ChoiceLink[] }) {
  return (
    <ul className="choice" aria-label={label}>
      {links.map(({ title, to, isCurrent }) => (
        <li key={title}>
          <Link to={to} aria-current={isCurrent ? 'true' : undefined}>
            {title}
          </Link>
        </li>
      ))}
    </ul>
  );
}

interface ChoiceLink {
  title: string;
  to: string;
  isCurrent: boolean;
}

/** Links that export the list with the filter of the page. */
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

/** Shown instead of an empty list: explains what belongs here and what to do. */
export function EmptyState({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Shown if the filter of a list matches nothing. @param props.list the page of the list. */
export function NoMatches({ list, what }: { list: string; what: string }) {
  return (
    <EmptyState title={`No ${what} match this filter`}>
      <p>
        <Link to={list}>{`Show all ${what}`}</Link>
      </p>
    </EmptyState>
  );
}

export interface Fact {
  name: string;
  value: ReactNode;
}

/** Null if the value is. */
export const fact = <T,>(name: string, value: T | null, show: (value: T) => ReactNode): Fact | null =>
  value === null ? null : { name, value: show(value) };

export const idCode = (value: string) => <code className="id">{escapeBidi(value)}</code>;

/** @param facts null entries are left out. */
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

/** Error message. */
export function ErrorNotice({ why }: { why: string | null }) {
  return why === null ? null : (
    <p className="notice bad" role="alert">
      {why}
    </p>
  );
}

/** Success message. */
export function SuccessNotice({ what }: { what: string | null }) {
  return what === null ? null : (
    <p className="notice good" role="status">
      {what}
    </p>
  );
}

/** The equivalent command. */
export function CommandLine({ line }: { line: string }) {
  return (
    <p className="command">
      <span>On the command line</span> <code>{line}</code>
    </p>
  );
}
