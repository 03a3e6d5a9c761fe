/** Issues tokens again, one after the other. Their secrets go to a file that only this user can read. */
import { ApiError } from '../../daemon/api/client.js';
import { EXIT, Failure } from '../../console/failure.js';
import { TableFile } from '../../console/table-file.js';
import { formatOfName } from '../../console/table-format.js';
import type { ChangeRequest, ChangeResult } from '../state/exchange.js';
import type { ChangeOptions } from './change-options.js';
import { wholePath } from './files.js';

const FIELDS = ['id', 'token', 'name', 'project_id', 'project_name', 'expires_at', 'max_requests', 'like'];

type IssueAgain = Extract<ChangeRequest, { what: 'issue-again' }>;

/**
 * The file is created first: if the secrets cannot be saved, no token must be issued.
 *
 * @throws {Failure} if the file cannot be created.
 */
export async function issueAgain(
  { client, signal, progress, failureOf }: ChangeOptions,
  { tokens, path: given }: IssueAgain,
): Promise<ChangeResult> {
  const path = wholePath(given);
  const file = await TableFile.create(path, { format: formatOfName(path) ?? 'csv', fields: FIELDS }).catch(notCreated);
  const doneIds: string[] = [];
  const failures: ChangeResult['failures'][number][] = [];
  try {
    for (const token of tokens) {
      if (signal.aborted) break;
      try {
        const created = await client.createToken({ like: token.id });
        await file.add([{ ...created, like: token.id }]).catch((error: unknown) => {
          throw notWritten(created.id, error);
        });
        doneIds.push(token.id);
      } catch (error) {
        failures.push({ of: token, failure: failureOf(error) });
        // The rest would fail in the same way.
        if (!(error instanceof ApiError) || error.status === 401) break;
      }
      progress(doneIds.length + failures.length, tokens.length);
    }
  } finally {
    await (doneIds.length === 0 ? file.discard() : file.close());
  }
  return { done: doneIds.length, doneIds, failures, ...(doneIds.length > 0 && { path }) };
}

function notCreated(error: unknown): never {
  const { code = 'failed' } = error as NodeJS.ErrnoException;
  const message = code === 'EEXIST' ? 'The file already exists' : `Cannot create the file: ${code}`;
  throw new Failure(EXIT.refused, message, { code: 'file_not_created' });
}

const notWritten = (id: string, error: unknown) =>
  new Failure(EXIT.refused, `the secret of ${id} could not be written and is lost; revoke it`, {
    code: 'secret_lost',
    cause: error,
  });
