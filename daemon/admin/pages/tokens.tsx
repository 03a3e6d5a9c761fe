import { counted, exact } from '../../api/formats.js';
import type { WireProject, WireToken } from '../../api/contract.js';
import { TOKEN_STATES, type TokenSortOrder } from '../../api/vocabulary.js';
import { Heading } from './document.js';
import { Field, Select } from './fields.js';
import { ChangeForm, Link, QueryForm } from './frame.js';
import { choicesOf, ProjectLink, TokenLink } from './links.js';
import { EmptyState, Paging, ErrorNotice, Table } from './parts.js';
import { escapeBidi, shortId, StateMark, stateWord, Time, Uses } from './formats.js';

export interface TokensProps {
  tokens: readonly WireToken[];
  total: number | null;
  next: string | null;
  query: URLSearchParams;
  projects: readonly WireProject[];
  /** Error message if the filter is invalid. */
  refused: string | null;
}

const SORTS = [
  ['-created_at', 'newest first'],
  ['created_at', 'oldest first'],
  ['expires_at', 'expiring first'],
  ['-last_used_at', 'last used first'],
  ['-request_count', 'most requests first'],
  ['name', 'by name'],
] as const satisfies readonly (readonly [TokenSortOrder, string])[];

const WITHIN = [
  ['', 'any time'],
  ['1', 'within 1 h'],
  ['24', 'within 24 h'],
  ['168', 'within 7 days'],
] as const;

export function tokensPage({ tokens, total, next, query, projects, refused }: TokensProps) {
  const isFiltered = [...query].some(([name, value]) => name !== 'sort' && name !== 'cursor' && value !== '');
  return (
    <>
      <Heading title="Tokens" actions={<NewToken />} />
      <ErrorNotice why={refused} />
      <TokenFilter query={query} projects={projects} />
      {tokens.length > 0 ? (
        <>
          <p className="faint total" id="total" data-live="">
            {total === null ? '' : counted(total, 'token')}
          </p>
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
      columns={[
        { title: 'Token', show: (token) => <TokenLink token={token} /> },
        { title: 'State', show: ({ state }) => <StateMark state={state} /> },
        { title: 'Project', show: ({ project_id: id, project_name: name }) => <ProjectLink project={{ id, name }} /> },
        { title: 'Expires', show: ({ expires_at: at }) => <Time at={at} /> },
        { title: 'Requests', isNumber: true, show: (token) => <Uses token={token} /> },
        { title: 'Last used', show: ({ last_used_at: at }) => <Time at={at} /> },
      ]}
    />
  );
}

function TokenFilter({ query, projects }: Pick<TokensProps, 'query' | 'projects'>) {
  const given = (name: string) => query.get(name) ?? '';
  const states = TOKEN_STATES.map((state) => [state, stateWord(state)] as const);
  return (
    <QueryForm to="tokens" className="filter" role="search" aria-label="Filter tokens">
      <Field name="q" label="Name or ID">
        {(attributes) => <input type="search" maxLength={100} defaultValue={given('q')} {...attributes} />}
      </Field>
      <Field name="project_id" label="Project">
        {(attributes) => (
          <Select choices={[['', 'all'], ...choicesOf(projects)]} chosen={given('project_id')} {...attributes} />
        )}
      </Field>
      <Field name="state" label="State">
        {(attributes) => <Select choices={[['', 'any'], ...states]} chosen={given('state')} {...attributes} />}
      </Field>
      <Field name="expires_within" label="Expires">
        {(attributes) => <Select choices={WITHIN} chosen={given('expires_within')} {...attributes} />}
      </Field>
      <Field name="used_over" label="Used more than, %">
        {(attributes) => <input type="number" min="0" max="100" defaultValue={given('used_over')} {...attributes} />}
      </Field>
      <Field name="sort" label="Sort by">
        {(attributes) => <Select choices={SORTS} chosen={given('sort') || '-created_at'} {...attributes} />}
      </Field>
      <div className="buttons">
        <button type="submit">Filter</button>
        {query.size > 0 ? <Link to="tokens">Clear</Link> : null}
      </div>
    </QueryForm>
  );
}

function NoTokens({ isFiltered, hasProjects }: { isFiltered: boolean; hasProjects: boolean }) {
  if (isFiltered) {
    return (
      <EmptyState title="No tokens match this filter">
        <p>
          <Link to="tokens">Show all tokens</Link>
        </p>
      </EmptyState>
    );
  }
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
