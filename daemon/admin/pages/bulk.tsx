import { counted, exact } from '../../api/formats.js';
import { type ConfirmProps, confirmPage } from './confirm.js';
import { Heading } from './document.js';
import { Link, RestOfPage } from './frame.js';
import { TokenLink } from './formats.js';
import { SuccessNotice } from './parts.js';
import { escapeBidi } from './formats.js';

export interface BulkResult {
  id: string;
  name: string | null;
  /** `unknown`: the change was sent, but no response says whether it was made. */
  outcome: 'changed' | 'already' | 'failed' | 'unknown';
  /** Why the change failed or its result is unknown. */
  why?: string;
  /** Whether the management API rejected the request as invalid. */
  isRefusal?: boolean;
}

const WORDS = {
  revoke: {
    verb: 'Revoke',
    past: 'revoked',
    says: 'Clients of these tokens get 401 from the next request on, and requests in flight are ended. You can reactivate the tokens.',
  },
  reactivate: {
    verb: 'Reactivate',
    past: 'reactivated',
    says: 'The tokens are accepted again from the next request on, unless they have expired or reached their cap.',
  },
} as const;

export type BulkWhat = keyof typeof WORDS;

export interface FilterTerm {
  name: string;
  value: string;
}

export interface BulkAskProps extends Pick<ConfirmProps, 'refused' | 'reason'> {
  what: BulkWhat;
  count: number;
  /** Null if the tokens were selected one by one. Empty if they are all tokens. */
  filter: readonly FilterTerm[] | null;
  /** Hidden fields of the form. */
  fields: readonly (readonly [name: string, value: string])[];
}

export function bulkAskPage({ what, count, filter, fields, ...more }: BulkAskProps) {
  const { verb, says } = WORDS[what];
  const title = `${verb} ${counted(count, 'token')}?`;
  const body = confirmPage({
    title,
    notice: filter && <FilterNotice filter={filter} />,
    message: says,
    to: 'tokens/marked',
    back: 'tokens',
    verb,
    isDangerous: what === 'revoke',
    fields: [['what', what], ['confirmed', 'yes'], ...fields],
    ...more,
  });
  return { title, body };
}

function FilterNotice({ filter }: { filter: readonly FilterTerm[] }) {
  if (filter.length === 0) {
    return (
      <p className="notice">
        <strong>These are all tokens of all projects.</strong>
      </p>
    );
  }
  return (
    <p className="notice">
      All tokens with{' '}
      {filter.map(({ name, value }, index) => (
        <span key={name}>
          {index === 0 ? '' : ', '}
          {name} <strong>{escapeBidi(value)}</strong>
        </span>
      ))}
    </p>
  );
}

/** The page shows the progress while it is sent, and then the summary. */
export function bulkProgressPage({ what, count }: { what: BulkWhat; count: number }) {
  const title = `${WORDS[what].verb} ${counted(count, 'token')}`;
  const body = (
    <div className="narrow">
      <Heading title={title} path={<Link to="tokens">Tokens</Link>} />
      {/* The style shows only the last part that has come. */}
      <div className="last-only">
        <p>Keep this page open until it is done.</p>
        <RestOfPage />
      </div>
    </div>
  );
  return { title, body };
}

export function bulkProgress({ what, done, all }: { what: BulkWhat; done: number; all: number }) {
  const says = `${exact(done)} of ${exact(all)}`;
  return (
    <div className="progress">
      <progress max={all} value={done} aria-label={`${WORDS[what].verb}: ${says}`} />
      <span>{says}. Keep this page open until it is done.</span>
    </div>
  );
}

// A longer list would not be read. The list of tokens shows the others.
const MAX_LISTED = 50;

export function bulkSummary({ what, results }: { what: BulkWhat; results: readonly BulkResult[] }) {
  const { past } = WORDS[what];
  const of = (outcome: BulkResult['outcome']) => results.filter((result) => result.outcome === outcome);
  const [changed, already, failed, unknown] = [of('changed'), of('already'), of('failed'), of('unknown')];
  return (
    <div className="summary">
      <SuccessNotice what={`${counted(changed.length, 'token')} ${past}.`} />
      {already.length === 0 ? null : (
        <p>{`${counted(already.length, 'token')} ${already.length === 1 ? 'was' : 'were'} already ${past}.`}</p>
      )}
      <NotDone what={`${counted(failed.length, 'token')} not ${past}:`} results={failed} />
      <NotDone
        what={`It is unknown whether ${counted(unknown.length, 'token')} ${unknown.length === 1 ? 'was' : 'were'} ${past}. Check before you try again:`}
        results={unknown}
      />
      <p className="buttons start">
        <Link to="tokens" className="button primary">
          Go to the tokens
        </Link>
      </p>
    </div>
  );
}

/** A list of tokens, with an error message for each. */
function NotDone({ what, results }: { what: string; results: readonly BulkResult[] }) {
  if (results.length === 0) return null;
  return (
    <div className="notice bad" role="alert">
      <p>{what}</p>
      <ul>
        {results.slice(0, MAX_LISTED).map(({ id, name, why }) => (
          <li key={id}>
            <TokenLink token={{ id, name }} /> {escapeBidi(why ?? '')}
          </li>
        ))}
      </ul>
      {results.length > MAX_LISTED ? <p>{`And ${exact(results.length - MAX_LISTED)} more.`}</p> : null}
    </div>
  );
}
