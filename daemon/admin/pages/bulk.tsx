import { counted } from '../../api/formats.js';
import { Heading } from './document.js';
import { ReasonField } from './fields.js';
import { ChangeForm, Link } from './frame.js';
import { TokenLink } from './links.js';
import { SuccessNotice, ErrorNotice } from './parts.js';
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
      <ErrorNotice why={refused} />
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
  const title = failed.length + unknown.length === 0 ? 'Done' : 'Some changes failed';
  const body = (
    <div className="narrow">
      <Heading title={title} path={<Link to="tokens">Tokens</Link>} />
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
  return { title, body };
}

/** A list of tokens, with an error message for each. */
function NotDone({ what, results }: { what: string; results: readonly BulkResult[] }) {
  if (results.length === 0) return null;
  return (
    <div className="notice bad" role="alert">
      <p>{what}</p>
      <ul>
        {results.map(({ id, name, why }) => (
          <li key={id}>
            <TokenLink token={{ id, name }} /> {escapeBidi(why ?? '')}
          </li>
        ))}
      </ul>
    </div>
  );
}
