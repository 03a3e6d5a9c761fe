/** Components that several pages share. */
import type { ReactNode } from 'react';
import type { WireProject } from '../../api/contract.js';
import { escapeBidi } from './formats.js';
import { Link } from './frame.js';

export interface TableColumn<Row> {
  title: string;
  /** Numbers are right-aligned. */
  isNumber?: boolean | undefined;
  show: (row: Row) => ReactNode;
}

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
export function Table<Row>({ id, label, columns, rows, mark, keyOf }: TableProps<Row>) {
  const look = ({ isNumber }: TableColumn<Row>) => (isNumber ? 'number' : undefined);
  return (
    <table id={id} data-live="" aria-label={label}>
      <thead>
        <tr>
          {mark && (
            <th scope="col">
              <span className="unseen">Select</span>
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
