/** Undoes a batch: all that one change of many tokens, one command or one dialog has changed. */
import { skippedSentences } from '../../api/undone.js';
import type { ManagementClient } from '../../api/client.js';
import type { WireBatchUndone } from '../../api/contract.js';
import { actorShown, counted, exact } from '../../api/formats.js';
import { attempt, get, type PagePart, type PageRequest, type PageResponse, post } from '../page-request.js';
import { Problem } from '../problem.js';
import { Heading } from '../parts/document.js';
import { ActionLink, ChangeForm, Link, PartsOfPage } from '../parts/frame.js';
import { Name, NameOrId, Time } from '../parts/formats.js';
import { SuccessNotice } from '../parts/common.js';
import { confirmPage } from './confirm.js';

/** A button that undoes a batch. */
export function UndoForm({ batch, verb = 'Undo' }: { batch: string; verb?: string }) {
  return (
    <ChangeForm to={`batches/${batch}/undo`}>
      <button type="submit">{verb}</button>
    </ChangeForm>
  );
}

// A longer list would not be read.
const MAX_LISTED = 50;

function Undone({ result: { batch, undone, skipped } }: { result: WireBatchUndone }) {
  const left = skipped.filter(({ reason }) => reason !== 'unchanged' && reason !== 'undone_before');
  return (
    <div className="summary">
      <SuccessNotice what={`${counted(undone.length, 'change')} undone.`} />
      {skipped.length === 0 ? null : (
        <div className="notice">
          {skippedSentences(skipped).map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
          <ul>
            {left.slice(0, MAX_LISTED).map(({ token_id: token, project_id: project }) => (
              <li key={token ?? project}>
                {token ? (
                  <Link to={`tokens/${token}`}>
                    <NameOrId id={token} name={null} />
                  </Link>
                ) : project ? (
                  <Link to={`projects/${project}`}>
                    <NameOrId id={project} name={null} />
                  </Link>
                ) : null}
              </li>
            ))}
          </ul>
          {left.length > MAX_LISTED ? <p>{`And ${exact(left.length - MAX_LISTED)} more.`}</p> : null}
        </div>
      )}
      <div className="buttons start">
        <Link to="tokens" className="button primary">
          Go to the tokens
        </Link>
        {undone.length > 0 ? <UndoForm batch={batch} verb="Redo" /> : null}
        <ActionLink to={`audit?batch=${batch}`}>Audit records</ActionLink>
      </div>
    </div>
  );
}

// ---- routes

async function ask(request: PageRequest, refused: string | null): Promise<PageResponse> {
  const { client, id, may } = request;
  const canRead = may('read the audit log');
  const [record] = canRead ? (await client.auditRecords({ batch: id, group: 'batch', limit: '1' })).items : [];
  if (canRead && !record) throw new Problem(404, 'Not found', 'There are no changes with this ID.');
  return confirmPage(request, {
    title: record ? `Undo ${counted(record.count ?? 1, 'change')}?` : 'Undo the changes?',
    section: canRead ? 'audit' : 'tokens',
    notice: record && (
      <p className="notice">
        {record.action} by <Name>{actorShown(record)}</Name>, <Time at={record.time} />
      </p>
    ),
    message: 'What somebody else has changed again since stays as it is.',
    verb: 'Undo',
    isDangerous: false,
    to: `batches/${id}/undo`,
    back: canRead ? `audit?batch=${id}` : 'tokens',
    refused,
  });
}

/** Undoes part by part, as far as the API does in one request. If the browser goes, no more is undone. */
async function* parts(client: ManagementClient, id: string, first: WireBatchUndone): AsyncGenerator<PagePart> {
  let all = first;
  while (all.next !== null) {
    yield <p>{`${exact(all.undone.length)} undone. Keep this page open until it is done.`}</p>;
    const part: WireBatchUndone | null = await client.undoBatch(id, { cursor: all.next }).catch(() => null);
    if (part === null) {
      yield (
        <p className="notice bad" role="alert">
          {`${counted(all.undone.length, 'change')} undone. It is unknown whether more were: undo it again.`}
        </p>
      );
      return;
    }
    const { undone, skipped } = all;
    all = { ...part, undone: [...undone, ...part.undone], skipped: [...skipped, ...part.skipped] };
  }
  yield <Undone result={all} />;
}

async function undo(request: PageRequest): Promise<PageResponse> {
  const { id, changeClient: client } = request;
  // The first response shows whether the API accepts the form. After that the page is sent, with status 200.
  const { value: first, refused } = await attempt<WireBatchUndone | null>(() => client.undoBatch(id, {}), null);
  if (first === null) return ask(request, refused);
  const body = (
    <div className="narrow">
      <Heading title="Undo" path={<Link to={`audit?batch=${id}`}>Audit</Link>} />
      <PartsOfPage />
    </div>
  );
  return { title: 'Undo', section: 'audit', body, rest: parts(client, id, first) };
}

export const batchRoutes = [
  get('/batches/:id/undo', 'undo changes', (request) => ask(request, null)),
  post('/batches/:id/undo', 'undo changes', undo),
];
