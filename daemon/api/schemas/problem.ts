import * as z from 'zod';
import { string } from './fields.js';

/** Every code that an error of the management API can have, with what it means. A code never changes its meaning. */
export const PROBLEM_CODES = {
  invalid_request: 'A field, a query name or a header is missing, unknown or malformed; `error` names it.',
  malformed_request: 'The request cannot be read as HTTP.',
  project_inactive: 'The project is deactivated, so it gets no new tokens.',
  management_token_refused: 'The management token is missing or wrong.',
  log_in_refused: 'What the user typed is not the management token.',
  not_found: 'There is no such thing, or no such path.',
  method_not_allowed: 'The path has no such method; `Allow` has those that it has.',
  request_timeout: 'The request did not arrive in time.',
  name_taken: 'Another project has this name.',
  schema_too_new: 'The database was migrated by a newer release.',
  body_too_large: 'The body is larger than 64 KiB.',
  uri_too_long: 'The request target is too long.',
  unsupported_media_type: 'The body is not plain `application/json` in UTF-8.',
  expectation_failed: 'The header `Expect` asks for something else than `100-continue`.',
  too_many_attempts: 'Too many wrong credentials came from this address; `Retry-After` says when to try again.',
  headers_too_large: 'There are more than 100 headers, or more than 32 KiB of them.',
  internal: 'Something is wrong with the daemon; its log has the reason, under the `request_id`.',
  not_supported: 'A transfer coding or a version of HTTP is not supported.',
  unavailable:
    'The database, Redis or the audit log does not answer, or too many streams are open. Try again after `Retry-After`.',
} as const;
export type ProblemCode = keyof typeof PROBLEM_CODES;

export const problem = z
  .strictObject({
    error: string('What is wrong, for people.'),
    code: z.enum(Object.keys(PROBLEM_CODES) as [ProblemCode, ...ProblemCode[]]).describe(
      `What is wrong, for programs:\n\n${Object.entries(PROBLEM_CODES)
        .map(([code, meaning]) => `- \`${code}\`: ${meaning}`)
        .join('\n')}`,
    ),
    request_id: string('The id of the request, as in `X-Request-ID`: to find it in the log.'),
  })
  .describe('Why a request was not done.');
