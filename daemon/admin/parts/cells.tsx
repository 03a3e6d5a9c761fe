/** The columns of lists, as they are declared for all front ends, and how the Admin UI shows each kind of cell. */
import type { ReactNode } from 'react';
import { shortId } from '../../../console/columns/cell-text.js';
import { type Cell, type Column, isShownBy } from '../../../console/columns/column.js';
import { bytes, exact } from '../../api/formats.js';
import { Cap, Errors, Figure, milliseconds, Money, Name, StateMark, Time, utc } from './formats.js';
import { useFrame } from './frame.js';
import { ProjectLink, TokenLink } from './formats.js';
import type { Order, TableColumn } from './common.js';

/**
 * The columns that the Admin UI shows.
 *
 * @param ordersOf the orders by a field that the API sorts by. @param own what a page shows in its own way, by the IDs of columns.
 */
export const tableColumns = <Row, Id extends string>(
  columns: readonly Column<Row, Id>[],
  own: { readonly [K in Id]?: (row: Row) => ReactNode } = {},
  ordersOf: (field: string) => readonly Order[] = () => [],
): (TableColumn<Row> & { id: Id })[] =>
  columns
    .filter((column) => isShownBy(column, 'admin'))
    .map((column) => ({
      id: column.id,
      title: column.title,
      isNumber: column.alignRight,
      isWhole: column.isWhole,
      orders: column.sort === undefined ? [] : ordersOf(column.sort),
      show: own[column.id] ?? ((row) => <ColumnCell column={column} row={row} />),
    }));

function ColumnCell<Row>({ column, row }: { column: Column<Row>; row: Row }) {
  const { nowMs } = useFrame();
  return <CellContent cell={column.cell(row, nowMs)} />;
}

/** @param props.isFull whether a time is shown both as a distance and as date and time. */
export function CellContent({ cell, isFull = false }: { cell: Cell; isFull?: boolean }): ReactNode {
  switch (cell.kind) {
    case 'text':
      if (cell.text === null) return null;
      return cell.tint === 'dim' ? (
        <span className="faint">
          <Name>{cell.text}</Name>
        </span>
      ) : (
        <Name>{cell.text}</Name>
      );
    case 'code':
      return cell.text === null ? null : <code>{cell.text}</code>;
    case 'id':
      return <code>{shortId(cell.id)}</code>;
    case 'token':
      return <TokenLink token={cell.of} />;
    case 'project':
      return <ProjectLink project={cell.of} />;
    case 'subject':
      return (
        <>
          {cell.token && <TokenLink token={cell.token} />}
          {cell.token && cell.project && ' of '}
          {cell.project && <ProjectLink project={cell.project} />}
        </>
      );
    case 'state':
      return <StateMark state={cell.state} />;
    case 'distance':
      if (cell.words === undefined || cell.at === null) return <Time at={cell.at} isFull={isFull} />;
      return (
        <time dateTime={cell.at} title={utc(cell.at)}>
          {cell.words}
        </time>
      );
    case 'time':
    case 'clock':
      return <Time at={cell.at} isFull={isFull} />;
    case 'count':
      if (cell.count === null) return '–';
      return cell.tint === 'red' ? <Errors count={cell.count} /> : <Figure value={cell.count} />;
    case 'counts':
      return cell.counts.map(({ label, count }) => `${label} ${exact(count)}`).join(', ');
    case 'cap':
      return <Cap used={cell.used} cap={cell.cap} />;
    case 'part':
      return `${exact(cell.part)} of ${exact(cell.of)}`;
    case 'pair':
      return cell.counts.map((count) => (count === null ? '–' : exact(count))).join(' / ');
    case 'share':
      return Number.isFinite(cell.share) ? `${Math.floor(cell.share * 100)} %` : '–';
    case 'milliseconds':
      return milliseconds(cell.ms);
    case 'cost':
      return <Money cost={cell.cost} />;
    case 'bytes':
      return bytes(cell.bytes);
    case 'trend':
      return null; // Drawn by its page, which knows the length of a step.
  }
}
