import { Heading } from './document.js';
import { ReasonField } from './fields.js';
import { ChangeForm, Link } from './frame.js';
import { TokenLink } from './links.js';
import { Done, Refused } from './parts.js';
import { counted, plain } from './words.js';

export interface BulkResult {
  id: string;
  name: string | null;
  /** `unknown`: the change was sent, and no answer says whether it was made. */
  outcome: 'changed' | 'already' | 'failed' | 'unknown';
  /** Why it failed, or is not known. */
  why?: string;
  /** Whether the management API did not take what was asked. */
  isRefusal?: boolean;
}

const WORDS = {
  revoke: {
    verb: 'Revoke',
    past: 'revoked',
    says: 'Their clients get 401 from the next request on, and requests in flight are ended. Each can be reactivated.',
  },
  reactivate: {
    verb: 'Reactivate',
    past: 'reactivated',
    says: 'They pass again from the next request on, unless their time or their requests are over.',
  },
} as const;

type What = keyof typeof WORDS;

export interface BulkAskProps {
  what: What;
  ids: readonly string[];
  refused: string | null;
  reason: string;
}

export function bulkAskPage({ what, ids, refused, reason }: BulkAskProps) {
  const { verb, says } = WORDS[what];
  const title = `${verb} ${counted(ids.length, 'token')}?`;
  const body = (
    <div className="narrow">
      <Heading title={title} />
      <Refused why={refused} />
      <p>{says}</p>
      <ChangeForm to="tokens/marked">
        <input type="hidden" name="what" value={what} />
        <input type="hidden" name="confirmed" value="yes" />
        {ids.map((id) => (
          <input key={id} type="hidden" name="id" value={id} />
        ))}
        <ReasonField reason={reason} />
        <div className="buttons">
          <Link to="tokens" className="button" autoFocus>
            Cancel
          </Link>
          <button type="submit" className={what === 'revoke' ? 'danger' : 'primary'}>
            {verb}
          </button>
        </div>
      </ChangeForm>
    </div>
  );
  return { title, body };
}

export function bulkDonePage({ what, results }: { what: What; results: readonly BulkResult[] }) {
  const { past } = WORDS[what];
  const of = (outcome: BulkResult['outcome']) => results.filter((result) => result.outcome === outcome);
  const [changed, already, failed, unknown] = [of('changed'), of('already'), of('failed'), of('unknown')];
  const title = failed.length + unknown.length === 0 ? 'Done' : 'Not all was done';
  const body = (
    <div className="narrow">
      <Heading title={title} path={<Link to="tokens">Tokens</Link>} />
      <Done what={`${counted(changed.length, 'token')} ${past}.`} />
      {already.length === 0 ? null : (
        <p>{`${counted(already.length, 'token')} ${already.length === 1 ? 'was' : 'were'} ${past} before.`}</p>
      )}
      <NotDone what={`${counted(failed.length, 'token')} not ${past}:`} results={failed} />
      <NotDone
        what={`It is not known whether ${counted(unknown.length, 'token')} ${unknown.length === 1 ? 'was' : 'were'} ${past}. Look before you send it again:`}
        results={unknown}
      />
      <p className="buttons start">
        <Link to="tokens" className="button primary">
          To the tokens
        </Link>
      </p>
    </div>
  );
  return { title, body };
}

/** With a reason for each. */
function NotDone({ what, results }: { what: string; results: readonly BulkResult[] }) {
  if (results.length === 0) return null;
  return (
    <div className="notice bad" role="alert">
      <p>{what}</p>
      <ul>
        {results.map(({ id, name, why }) => (
          <li key={id}>
            <TokenLink token={{ id, name }} /> {plain(why ?? '')}
          </li>
        ))}
      </ul>
    </div>
  );
}
