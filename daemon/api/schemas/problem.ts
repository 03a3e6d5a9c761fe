import * as z from 'zod';
import { string } from './fields.js';

/** All error codes of the management API with their meanings. The meaning of a code never changes. */
export const PROBLEM_CODES = {
  invalid_request: 'A field, query parameter or header is missing, unknown or malformed; `error` names it.',
  malformed_request: 'The request is not valid HTTP.',
  project_inactive: 'The project is inactive, so no tokens can be created for it.',
  management_token_refused:
    'The management token is missing or wrong, or the operator whose secret was sent is deactivated or has expired.',
  session_ended:
    'The session has ended: after 8 hours, by a log-out, or by a change of what its user may do. Log in again.',
  log_in_refused: 'The user did not enter the correct management token or the secret of an operator, or has no role.',
  login_pending:
    'The user has not ended the log-in with the identity provider yet. Try again after `interval` seconds.',
  not_permitted: 'The role of the caller does not allow this.',
  beyond_ceiling:
    'A token would have more than a ceiling of the caller allows; `error` names the ceiling. Nothing was created.',
  not_found: 'The resource or the path does not exist.',
  method_not_allowed: 'The path does not support this method; `Allow` lists the methods that it supports.',
  request_timeout: 'The request was not received in time.',
  name_taken: 'Another project or operator already has this name.',
  precondition_failed:
    'The resource was changed since the client got the ETag that it sent as `If-Match`. Nothing was changed.',
  upstream_changed:
    'The provider of the project was changed while the API key was checked with the former provider. Nothing was changed.',
  key_required:
    'The change leads the requests of the project to another host, and has no API key for it. The stored key is only sent to the host that it was given for.',
  key_refused: 'The provider refused the API key, which was to be checked. Nothing was changed.',
  key_not_checked:
    'The API key could not be checked, because the provider did not respond, or with a status of 500 or more. Nothing was changed.',
  schema_too_new: 'The database was migrated by a newer release.',
  body_too_large: 'The body is larger than 64 KiB.',
  uri_too_long: 'The request target is too long.',
  unsupported_media_type: 'The body is not plain `application/json` in UTF-8.',
  expectation_failed: 'The `Expect` header has a value other than `100-continue`.',
  too_many_attempts: 'Too many failed attempts from this address. Try again after the time in `Retry-After`.',
  headers_too_large: 'The request has more than 100 headers, or more than 32 KiB of headers.',
  internal: 'An internal error. Look for the `request_id` in the log of the daemon.',
  not_supported: 'The transfer coding or HTTP version is not supported.',
  unavailable:
    'The database, Redis or the audit log is unavailable, or too many streams are open. Try again after the time in `Retry-After`.',
} as const;
export type ProblemCode = keyof typeof PROBLEM_CODES;

export const problem = z
  .strictObject({
    error: string('Error message for people.'),
    code: z.enum(Object.keys(PROBLEM_CODES) as [ProblemCode, ...ProblemCode[]]).describe(
      `Error code for programs:\n\n${Object.entries(PROBLEM_CODES)
        .map(([code, meaning]) => `- \`${code}\`: ${meaning}`)
        .join('\n')}`,
    ),
    request_id: string('ID of the request, as in `X-Request-ID` and in the log.'),
  })
  .describe('An error.');
