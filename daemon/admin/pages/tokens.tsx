import { shortId, stateMark } from '../../../console/columns/cell-text.js';
import { TOKEN_COLUMNS, TOKEN_FIELDS } from '../../../console/columns/tokens.js';
import type { WireToken } from '../../api/contract.js';
import { counted, exact } from '../../api/formats.js';
import { TOKEN_STATES, type TokenSortOrder } from '../../api/vocabulary.js';
import { exported, pagesOf } from '../export.js';
import {
  allProjects,
  get,
  listPage,
  type PageRequest,
  type PageResponse,
  parametersOf,
  statusOf,
} from '../page-request.js';
import { tokenFilterOf } from '../token-filter.js';
import { escapeBidi } from '../parts/formats.js';
import { tableColumns } from '../parts/cells.js';
import { Heading } from '../parts/document.js';
import { type Choices, filterFields, FilterForm } from '../parts/fields.js';
import { ChangeForm, Link } from '../parts/frame.js';
import { EmptyState, ErrorNotice, Exports, type FilteredListProps, NoMatches, Paging, Table } from '../parts/common.js';

interface TokensProps extends FilteredListProps {
  tokens: readonly WireToken[];
  total: number | null;
}

const SORTS = [
  ['-created_at', 'newest first'],
  ['created_at', 'oldest first'],
  ['expires_at', 'expiring first'],
  ['-last_used_at', 'last used first'],
  ['-request_count', 'most requests first'],
  ['name', 'by name'],
  ['live', 'active first'],
] as const satisfies readonly (readonly [TokenSortOrder, string])[];

const WITHIN = [
  ['', 'any time'],
  ['1', 'within 1 h'],
  ['24', 'within 24 h'],
  ['168', 'within 7 days'],
] as const;

const IDLE = [
  ['', 'any time'],
  ['1d', '1 day'],
  ['7d', '7 days'],
  ['30d', '30 days'],
  ['90d', '90 days'],
] as const;

const CREATED = [
  ['', 'any time'],
  ['<1h', 'in the last hour'],
  ['<24h', 'in the last 24 h'],
  ['<7d', 'in the last 7 days'],
  ['>30d', 'over 30 days ago'],
  ['>90d', 'over 90 days ago'],
] as const;

// The limit of the API.
const MAX_ERRORS = 1_000_000;

const MORE_FILTERS = ['created', 'idle_over', 'errors_over', 'model', 'used_over'];

function TokensPage({ tokens, total, next, query, projects, refused }: TokensProps) {
  const isFiltered = [...query].some(([name, value]) => name !== 'sort' && name !== 'cursor' && value !== '');
  return (
    <>
      <Heading title="Tokens" actions={<NewToken />} />
      <ErrorNotice why={refused} />
      <TokenFilter query={query} projects={projects} />
      {tokens.length > 0 ? (
        <>
          <div className="section-head total">
            <p className="faint" id="total" data-live="">
              {total === null ? '' : counted(total, 'token')}
            </p>
            <Exports to="tokens/export" query={query} />
          </div>
          <ChangeForm to="tokens/marked" className="marked" data-marking="">
            <TokenTable tokens={tokens} />
            <input type="hidden" name="query" value={query.toString()} />
            <div className="buttons start bar">
              <button type="button" data-mark-all="" hidden>
                Select all on this page
              </button>
              <AllMatching total={total} isFiltered={isFiltered} />
              <button type="submit" name="what" value="revoke">
                Revoke selected…
              </button>
              <button type="submit" name="what" value="reactivate">
                Reactivate selected…
              </button>
            </div>
          </ChangeForm>
        </>
      ) : (
        refused === null && <NoTokens isFiltered={isFiltered} hasProjects={projects.length > 0} />
      )}
      <Paging to="tokens" query={query} next={next} />
    </>
  );
}

/** Selects more than this page. The confirmation page counts the tokens again. */
function AllMatching({ total, isFiltered }: { total: number | null; isFiltered: boolean }) {
  return (
    <label id="all-matching" data-live="" className="checkbox">
      <input type="checkbox" name="all" value="yes" />
      {`All${total === null ? '' : ` ${exact(total)}`} ${isFiltered ? 'that match this filter' : 'of the list'}`}
    </label>
  );
}

const NewToken = () => (
  <Link to="tokens/new" className="button primary">
    New token
  </Link>
);

const COLUMNS = tableColumns(TOKEN_COLUMNS);

function TokenTable({ tokens }: { tokens: readonly WireToken[] }) {
  return (
    <Table
      id="tokens"
      label="Tokens"
      rows={tokens}
      keyOf={({ id }) => id}
      mark={({ id, name }) => (
        <input
          type="checkbox"
          name="id"
          value={id}
          aria-label={`Select ${name === null ? shortId(id) : escapeBidi(name)}`}
        />
      )}
      columns={COLUMNS}
    />
  );
}

function TokenFilter({ query, projects }: Pick<TokensProps, 'query' | 'projects'>) {
  const { input, select, project } = filterFields(query);
  const states = TOKEN_STATES.map((state) => [state, stateMark(state)?.word ?? state] as const);
  return (
    <FilterForm to="tokens" label="Filter tokens" query={query} more={<MoreFilters query={query} />}>
      {input('q', 'Name or ID', { type: 'search', maxLength: 100 })}
      {project(projects)}
      {select('state', 'State', [['', 'any'], ...states])}
      {select('expires_within', 'Expires', WITHIN)}
      {select('sort', 'Sort by', SORTS, '-created_at')}
    </FilterForm>
  );
}

/** A value that is not one of the choices is in the address that somebody wrote. */
const choicesWith = (choices: Choices, given: string): Choices =>
  choices.some(([value]) => value === given) ? choices : [...choices, [given, given]];

/** Filters that are seldom used. They are open if one of them is set. */
function MoreFilters({ query }: { query: URLSearchParams }) {
  const { given, input, select } = filterFields(query);
  return (
    <details className="more" id="more-filters" open={MORE_FILTERS.some((name) => given(name) !== '')}>
      <summary>More filters</summary>
      <div className="fields">
        {select('created', 'Created', choicesWith(CREATED, given('created')))}
        {select('idle_over', 'Not used for', choicesWith(IDLE, given('idle_over')))}
        {input('used_over', 'Used more than, %', { type: 'number', min: 0, max: 100 })}
        {input('errors_over', 'Errors, more than', { type: 'number', min: 0, max: MAX_ERRORS })}
        {input('model', 'Model, a part of its name', { type: 'text', maxLength: 200, spellCheck: false })}
      </div>
      <p className="hint">Errors and models are those since yesterday, 00:00 UTC.</p>
    </details>
  );
}

function NoTokens({ isFiltered, hasProjects }: { isFiltered: boolean; hasProjects: boolean }) {
  if (isFiltered) return <NoMatches list="tokens" what="tokens" />;
  return (
    <EmptyState title="No tokens yet">
      <p>
        Clients use a token instead of the provider’s key. A token stops working when it expires, when it reaches its
        request cap, or when you revoke it.
      </p>
      <p>
        {hasProjects ? (
          <NewToken />
        ) : (
          <>
            A token needs a project. <Link to="projects/new">Create one</Link>
          </>
        )}
      </p>
    </EmptyState>
  );
}

// ---- routes

const queryOf = (query: URLSearchParams) => ({ ...tokenFilterOf(query), ...parametersOf(query, ['sort', 'cursor']) });

/** All tokens that match the filter, without their secrets, which nobody has. */
async function exportAll(request: PageRequest): Promise<PageResponse> {
  const { cursor, ...filter } = queryOf(request.query);
  const pages = pagesOf((paging) => request.client.tokens({ ...filter, ...paging }), cursor);
  return exported(request, 'tokens', TOKEN_FIELDS, pages);
}

async function list(request: PageRequest): Promise<PageResponse> {
  const { client, query } = request;
  const [projects, { items, ...page }] = await Promise.all([
    allProjects(client),
    listPage(async () => client.tokens(queryOf(query))),
  ]);
  const body = <TokensPage tokens={items} {...page} query={query} projects={projects} />;
  return { title: 'Tokens', section: 'tokens', isLive: true, body, ...statusOf(page.refused) };
}

export const tokensRoutes = [get('/tokens', list), get('/tokens/export', exportAll)];
