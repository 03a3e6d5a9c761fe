import { AUDIT_COLUMNS, AUDIT_FIELDS } from '../../../console/columns/audit.js';
import { shortId } from '../../../console/columns/cell-text.js';
import { subjectsOf } from '../../../console/columns/column.js';
import { actorShown, exact } from '../../api/formats.js';
import type { AuditQuery, WireAuditRecord } from '../../api/contract.js';
import { AUDIT_ACTIONS, AUDIT_ACTORS, AUDIT_OUTCOMES, UUID_PATTERN } from '../../api/vocabulary.js';
import { exported, pagesOf } from '../export.js';
import { allProjects, get, listPage, type PageRequest, parametersOf, periodOf, statusOf } from '../page-request.js';
import { type Box, boxOf, boxRoute, combined, unknownSecret } from '../query-box.js';
import { withTokenId } from '../token-filter.js';
import { tableColumns } from '../parts/cells.js';
import { Heading } from '../parts/document.js';
import { type Choices, choicesWith, filterFields, FilterForm } from '../parts/fields.js';
import { ConfirmLink, Link } from '../parts/frame.js';
import { QueryBox, QueryHelp, QueryProblem } from '../parts/query-box.js';
import { escapeBidi, Name, OutcomeMark, ProjectLink, Time, TokenLink } from '../parts/formats.js';
import {
  EmptyState,
  ErrorNotice,
  Exports,
  fact,
  Facts,
  type FilteredListProps,
  idCode,
  NoMatches,
  Paging,
  Table,
} from '../parts/common.js';

interface AuditProps extends FilteredListProps {
  box: Box<'audit'>;
  records: readonly WireAuditRecord[];
}

const SINCE = [
  ['', 'any time'],
  ['1', 'last hour'],
  ['24', 'last 24 h'],
  ['168', 'last 7 days'],
  ['720', 'last 30 days'],
] as const;

function AuditPage({ records, next, query, projects, box, refused }: AuditProps) {
  const isFiltered = [...query].some(([name, value]) => name !== 'cursor' && value !== '');
  const batch = batchIn(query);
  return (
    <>
      {batch === null ? (
        <Heading title="Audit" />
      ) : (
        <Heading
          title="Batch"
          path={<Link to="audit">Audit</Link>}
          actions={<ConfirmLink to={`batches/${batch}/undo`}>Undo…</ConfirmLink>}
        />
      )}
      <ErrorNotice why={box.problem ? null : refused} />
      <AuditFilter query={query} projects={projects} box={box} />
      {records.length > 0 ? (
        <>
          <Exports to="audit/export" query={query} />
          <RecordTable id="records" label="Audit records" records={records} hasSubjects isGrouped={batch === null} />
        </>
      ) : (
        refused === null && <NoRecords isFiltered={isFiltered} />
      )}
      <Paging to="audit" query={query} next={next} />
    </>
  );
}

function NoRecords({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <NoMatches list="audit" what="records" />
  ) : (
    <EmptyState title="No records yet">
      <p>Changes and the hourly use of tokens are recorded here.</p>
    </EmptyState>
  );
}

const MORE_FILTERS = ['outcome', 'actor', 'token_id'];

function AuditFilter({ query, projects, box }: Pick<AuditProps, 'query' | 'projects' | 'box'>) {
  const { given, select, project, token, since, until, times } = filterFields(query);
  const plainly = (values: readonly string[]): Choices => [['', 'any'], ...values.map((it) => [it, it] as const)];
  const more = (
    <>
      <QueryProblem box={box} />
      <details className="more" id="more-filters" open={MORE_FILTERS.some((name) => given(name) !== '')}>
        <summary>More filters</summary>
        <div className="fields">
          {select('outcome', 'Outcome', plainly(AUDIT_OUTCOMES))}
          {select('actor', 'Actor', choicesWith(plainly(AUDIT_ACTORS), given('actor')))}
          {token()}
        </div>
      </details>
      <QueryHelp screen="audit" />
    </>
  );
  return (
    <FilterForm to="audit" label="Filter audit records" query={query} more={more} hasBox>
      <QueryBox box={box} placeholder="words, action:token.revoke" />
      {select('action', 'Action', plainly(AUDIT_ACTIONS))}
      {project(projects)}
      {select('since_hours', 'Period', SINCE)}
      {since('Or since')}
      {until()}
      {times()}
    </FilterForm>
  );
}

/** The batch whose members the page shows; null for a list in which each batch is one row. */
function batchIn(query: URLSearchParams): string | null {
  const given = query.get('batch') ?? '';
  return UUID_PATTERN.test(given) ? given : null;
}

interface RecordTableProps {
  id: string;
  label: string;
  records: readonly WireAuditRecord[];
  /** Whether the records are about several projects and tokens. */
  hasSubjects?: boolean;
  /** Whether a record stands for all of its batch. */
  isGrouped?: boolean;
}

export function RecordTable({ id, label, records, hasSubjects = false, isGrouped = false }: RecordTableProps) {
  if (records.length === 0) return <p className="faint">No records yet.</p>;
  return (
    <Table
      id={id}
      label={label}
      noun="record"
      rows={records}
      keyOf={(record) => record.id}
      columns={(isGrouped ? GROUPED : COLUMNS).filter((column) => hasSubjects || column.id !== 'target')}
    />
  );
}

/** What was done comes first, as the header of its row. @param linkTo what the action leads to. */
const columnsWith = (linkTo: (record: WireAuditRecord) => string) =>
  tableColumns(AUDIT_COLUMNS, {
    action: (record) => (
      <Link to={linkTo(record)}>
        {record.count === null ? record.action : `${record.action} × ${exact(record.count)}`}
      </Link>
    ),
    outcome: ({ outcome }) => <OutcomeMark outcome={outcome} />,
    actor: (record) => (
      <>
        <Name>{actorShown(record)}</Name>{' '}
        {record.client_ip === null ? null : <span className="faint">{record.client_ip}</span>}
      </>
    ),
  }).sort((one, other) => Number(other.id === 'action') - Number(one.id === 'action'));

const COLUMNS = columnsWith(({ id }) => `audit/${id}`);
/** A record that stands for several has no request of its own. */
const GROUPED = columnsWith(({ id, batch, count, request_id: request }) =>
  batch !== null && request === null && (count ?? 0) > 1 ? `audit?batch=${batch}` : `audit/${id}`,
);

function RecordPage({ record }: { record: WireAuditRecord }) {
  const { token, project } = subjectsOf(record);
  return (
    <>
      <Heading title={record.action} path={<Link to="audit">Audit</Link>} />
      <Facts
        id="facts"
        facts={[
          fact('Time', record.time, (at) => <Time at={at} isFull />),
          fact('Outcome', record.outcome, (outcome) => <OutcomeMark outcome={outcome} />),
          fact('Actor', actorShown(record), (actor) => <Name>{actor}</Name>),
          fact('Address', record.client_ip, (ip) => ip),
          fact('Reason', record.reason, (reason) => <Name>{reason}</Name>),
          fact('Count', record.count, exact),
          fact('Project', project, (it) => <ProjectLink project={it} />),
          fact('Token', token, (it) => <TokenLink token={it} />),
          fact('Secret', record.obfuscated, (secret) => <code>{secret}</code>),
          fact('Batch', record.batch, (id) => <Link to={`audit?batch=${id}`}>{shortId(id)}</Link>),
          fact('Undoes', record.undo_of, (id) => <Link to={`audit?batch=${id}`}>{shortId(id)}</Link>),
          fact('Request', record.request_id, idCode),
          fact('ID', record.id, idCode),
        ]}
      />
      {record.details === null ? null : <Details details={record.details} />}
    </>
  );
}

function Details({ details }: { details: Record<string, unknown> }) {
  return (
    <section aria-labelledby="details-title">
      <h2 id="details-title">Details</h2>
      <pre tabIndex={0} role="region" aria-label="Details as JSON">
        {escapeBidi(JSON.stringify(details, null, 2))}
      </pre>
    </section>
  );
}

// ---- routes

const FILTERS = ['action', 'outcome', 'actor', 'project_id', 'token_id', 'batch'] as const;

async function filterOf({ client, query }: PageRequest, box: Box<'audit'>): Promise<AuditQuery> {
  const fields = await withTokenId(client, parametersOf(query, FILTERS));
  return { ...combined(box, { ...fields, ...periodOf(query) }), ...parametersOf(query, ['cursor']) };
}

async function* allRecords(request: PageRequest): AsyncGenerator<readonly WireAuditRecord[]> {
  const { client, query } = request;
  const box = await boxOf(client, query, 'audit', await allProjects(client));
  const { cursor = null, ...filter } = await filterOf(request, box);
  yield* pagesOf((paging) => client.auditRecords({ ...filter, ...paging }), cursor);
}

export const auditRoutes = [
  get('/audit', 'read the audit log', async (request) => {
    const { client, query } = request;
    const projects = await allProjects(client);
    const box = await boxOf(client, query, 'audit', projects);
    const { items, ...page } = await listPage(async () => {
      const filter = await filterOf(request, box);
      return client.auditRecords({ ...filter, ...(filter.batch === undefined && { group: 'batch' }) });
    });
    const refused = unknownSecret(query) ?? page.refused;
    return {
      title: 'Audit',
      section: 'audit',
      // Only the first page refreshes: older records must not move while they are read.
      isLive: !query.has('cursor'),
      body: <AuditPage records={items} {...page} query={query} projects={projects} box={box} refused={refused} />,
      ...statusOf(page.refused),
    };
  }),
  boxRoute('audit', 'read the audit log', ({ id }) => `audit?token_id=${id}`),
  get('/audit/export', 'read the audit log', (request) =>
    exported(request, 'audit', AUDIT_FIELDS, allRecords(request)),
  ),
  get('/audit/:id', 'read the audit log', async ({ client, id }) => {
    const record = await client.auditRecord(id);
    return { title: `Audit: ${record.action}`, section: 'audit', body: <RecordPage record={record} /> };
  }),
];
