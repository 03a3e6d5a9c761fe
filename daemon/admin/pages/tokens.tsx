import type { ReactNode } from 'react';
import { shortId, stateMark } from '../../../console/columns/cell-text.js';
import { TOKEN_COLUMNS, TOKEN_FIELDS } from '../../../console/columns/tokens.js';
import type { WireToken } from '../../api/contract.js';
import { counted, exact } from '../../api/formats.js';
import { shownSecret, tokensShownAs } from '../../api/tokens-of-secret.js';
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
import { type Box, boxOf, boxRoute, unknownSecret } from '../query-box.js';
import { tokenFilterOf } from '../token-filter.js';
import { escapeBidi } from '../parts/formats.js';
import { tableColumns } from '../parts/cells.js';
import { Heading } from '../parts/document.js';
import { choicesWith, filterFields, FilterForm } from '../parts/fields.js';
import { ActionLink, ChangeForm, useMay } from '../parts/frame.js';
import { QueryBox, QueryHelp, QueryProblem } from '../parts/query-box.js';
import {
  EmptyState,
  ErrorNotice,
  Exports,
  type FilteredListProps,
  NoMatches,
  type Order,
  Paging,
  sortingOf,
  Table,
} from '../parts/common.js';

interface TokensProps extends FilteredListProps {
  box: Box<'tokens'>;
  tokens: readonly WireToken[];
  total: number | null;
}

const NEWEST = '-created_at';

/** The others are chosen by the headers of the columns, unless the window is too narrow for these. */
const SORTS = [
  [NEWEST, 'newest first'],
  ['created_at', 'oldest first'],
  ['live', 'active first'],
  ['expires_at', 'expiring first'],
  ['-expires_at', 'expiring last'],
  ['-last_used_at', 'last used first'],
  ['last_used_at', 'last used last'],
  ['-request_count', 'most requests first'],
  ['request_count', 'fewest requests first'],
  ['-spent', 'most spent first'],
  ['spent', 'least spent first'],
  ['name', 'by name'],
  ['-name', 'by name, reversed'],
] as const satisfies readonly (readonly [TokenSortOrder, string])[];

/** Numbers and uses begin with the most and the latest. */
function ordersOf(field: string): Order[] {
  const up = { name: field, direction: 'ascending' } as const;
  const down = { name: `-${field}`, direction: 'descending' } as const;
  return ['request_count', 'last_used_at', 'spent'].includes(field) ? [down, up] : [up, down];
}

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

const MORE_FILTERS = ['expires_within', 'created', 'idle_over', 'errors_over', 'model', 'used_over', 'left_under'];

function TokensPage({ tokens, total, next, query, projects, box, refused }: TokensProps) {
  const may = useMay();
  const isFiltered = [...query].some(([name, value]) => name !== 'sort' && name !== 'cursor' && value !== '');
  return (
    <>
      <Heading title="Tokens" actions={<NewToken />} />
      <ErrorNotice why={box.problem ? null : refused} />
      <TokenFilter query={query} projects={projects} box={box} />
      {tokens.length > 0 ? (
        <MarkedTokens query={query}>
          <div className="bar">
            {may('revoke tokens') ? (
              <div className="buttons start">
                <button type="button" data-mark-all="" hidden>
                  Select all on this page
                </button>
                <AllMatching total={total} isFiltered={isFiltered} />
                <button type="submit" name="what" value="revoke">
                  Revoke selected…
                </button>
                {may('change tokens') ? (
                  <button type="submit" name="what" value="reactivate">
                    Reactivate selected…
                  </button>
                ) : null}
              </div>
            ) : null}
            <p className="faint" id="total" data-live="">
              {total === null ? '' : counted(total, 'token')}
            </p>
            <Exports to="tokens/export" query={query} />
          </div>
          <TokenTable tokens={tokens} query={query} />
        </MarkedTokens>
      ) : (
        refused === null && <NoTokens isFiltered={isFiltered} hasProjects={projects.length > 0} />
      )}
      <Paging to="tokens" query={query} next={next} />
    </>
  );
}

/** The list is a form for those who may change many tokens. */
function MarkedTokens({ query, children }: { query: URLSearchParams; children: ReactNode }) {
  if (!useMay()('revoke tokens')) return <div className="marked">{children}</div>;
  return (
    <ChangeForm to="tokens/marked" className="marked" data-marking="">
      <input type="hidden" name="query" value={query.toString()} />
      {children}
    </ChangeForm>
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
  <ActionLink to="tokens/new" className="button primary">
    New token
  </ActionLink>
);

const COLUMNS = tableColumns(TOKEN_COLUMNS, {}, ordersOf);

function TokenTable({ tokens, query }: Pick<TokensProps, 'tokens' | 'query'>) {
  const canMark = useMay()('revoke tokens');
  const mark = ({ id, name }: WireToken) => (
    <input
      type="checkbox"
      name="id"
      value={id}
      aria-label={`Select ${name === null ? shortId(id) : escapeBidi(name)}`}
    />
  );
  return (
    <Table
      id="tokens"
      label="Tokens"
      noun="token"
      sorting={sortingOf('tokens', query, query.get('sort') || NEWEST)}
      rows={tokens}
      keyOf={({ id }) => id}
      {...(canMark && { mark })}
      columns={COLUMNS}
    />
  );
}

function TokenFilter({ query, projects, box }: Pick<TokensProps, 'query' | 'projects' | 'box'>) {
  const { select, project } = filterFields(query);
  const states = TOKEN_STATES.map((state) => [state, stateMark(state)?.word ?? state] as const);
  const more = (
    <>
      <QueryProblem box={box} />
      <MoreFilters query={query} />
      <QueryHelp screen="tokens" />
    </>
  );
  return (
    <FilterForm to="tokens" label="Filter tokens" query={query} more={more} hasBox>
      <QueryBox box={box} placeholder="name, ID, secret, state:active expires:<2h" />
      {project(projects)}
      {select('state', 'State', choicesWith([['', 'any'], ...states], query.get('state') ?? ''))}
      {select('sort', 'Sort by', SORTS, NEWEST)}
    </FilterForm>
  );
}

/** Filters that are seldom used. They are open if one of them is set. */
function MoreFilters({ query }: { query: URLSearchParams }) {
  const { given, input, select } = filterFields(query);
  return (
    <details className="more" id="more-filters" open={MORE_FILTERS.some((name) => given(name) !== '')}>
      <summary>More filters</summary>
      <div className="fields">
        {select('expires_within', 'Expires', WITHIN)}
        {select('created', 'Created', choicesWith(CREATED, given('created')))}
        {select('idle_over', 'Not used for', choicesWith(IDLE, given('idle_over')))}
        {input('used_over', 'Used more than, %', { type: 'number', min: 0, max: 100 })}
        {input('left_under', 'Budget left, less than, %', { type: 'number', min: 0, max: 100 })}
        {input('errors_over', 'Failures, more than', { type: 'number', min: 0, max: MAX_ERRORS })}
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
            A token needs a project. <ActionLink to="projects/new">Create one</ActionLink>
          </>
        )}
      </p>
    </EmptyState>
  );
}

// ---- routes

const queryOf = (query: URLSearchParams, box: Box<'tokens'>) => ({
  ...tokenFilterOf(query, box),
  ...parametersOf(query, ['sort', 'cursor']),
});

/** All tokens that match the filter, without their secrets, which nobody has. */
async function exportAll(request: PageRequest): Promise<PageResponse> {
  const { client, query } = request;
  const box = await boxOf(client, query, 'tokens', await allProjects(client));
  const { cursor, ...filter } = queryOf(query, box);
  const pages = pagesOf((paging) => client.tokens({ ...filter, ...paging }), cursor);
  return exported(request, 'tokens', TOKEN_FIELDS, pages);
}

async function list({ client, query }: PageRequest): Promise<PageResponse> {
  const shown = shownSecret((query.get('q') ?? '').trim());
  const found = shown === null ? null : await tokensShownAs(client, shown);
  const [token, ...others] = found ?? [];
  if (token && others.length === 0) return { to: `tokens/${token.id}` };
  const projects = await allProjects(client);
  // The parser takes no part of a secret.
  const box = await boxOf(client, found === null ? query : new URLSearchParams(), 'tokens', projects);
  const { items, ...page } = await listPage(async () =>
    found === null ? client.tokens(queryOf(query, box)) : { items: found, next: null, total: found.length },
  );
  const refused = unknownSecret(query) ?? page.refused;
  const props = { ...page, tokens: items, query, projects, box: { ...box, line: shown ?? box.line }, refused };
  return {
    title: 'Tokens',
    section: 'tokens',
    isLive: true,
    body: <TokensPage {...props} />,
    ...statusOf(page.refused),
  };
}

export const tokensRoutes = [
  get('/tokens', 'read tokens', list),
  boxRoute('tokens', 'read tokens', ({ id }) => `tokens/${id}`),
  get('/tokens/export', 'read tokens', exportAll),
];
