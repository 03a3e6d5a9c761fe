/** Headers of the management API and the path parameter `id`, as described in OpenAPI. */
type Json = Record<string, unknown>;

const TEXT = { type: 'string' };
const COUNT = { type: 'integer', format: 'int64', minimum: 0 };

export const ID = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The ID, in upper or lower case.',
  schema: { type: 'string', format: 'uuid' },
};

const header = (description: string, schema: Json, required = true) => ({ description, required, schema });

/** Response headers. */
export const HEADERS = {
  'X-Request-ID': header('The request ID that the client sent, if it is valid, else a new one.', TEXT),
  ETag: header('Version of the response; changes whenever the response changes.', TEXT),
  'X-Total-Count': header('Total number of entries on all pages.', COUNT),
  Link: header('Address of the next page, with `rel="next"`; absent on the last page.', TEXT, false),
  'WWW-Authenticate': header('`Bearer`', TEXT),
  'Retry-After': header('Seconds to wait before the next attempt.', COUNT),
};

const requestHeader = (name: string, description: string, schema: Json = TEXT): [string, Json] => [
  name,
  { name, in: 'header', description, schema },
];

/** Values of `X-Llmp-Actor`. A schema of its own, so that generated clients have one type for it instead of one for each operation. */
export const FRONT_END = { type: 'string', enum: ['cli', 'tui', 'admin'], description: 'A user interface of llmp.' };

/** Request headers. */
export const REQUEST_HEADERS: Record<string, Json> = Object.fromEntries([
  requestHeader(
    'If-None-Match',
    'The `ETag` of a response that the client has. If the response has not changed, the status is 304.',
  ),
  requestHeader(
    'If-Match',
    'Makes the change only if the resource is as it was in the response with this `ETag`, or with one of several, separated by commas; `*`: in any state. Otherwise the status is 412. Counts and times of use may have changed.',
  ),
  requestHeader(
    'Last-Event-ID',
    'The `id` of the last event that the client has. The stream continues with the events after it, as far as they are still stored.',
  ),
  requestHeader('X-Request-ID', 'ID of the request in logs and audit records: 1 to 64 letters, digits, `_` and `-`.'),
  requestHeader(
    'X-Llmp-Actor',
    'The user interface of llmp that sends the request, for the audit record. Other clients omit it.',
    {
      $ref: '#/components/schemas/frontEnd',
    },
  ),
  requestHeader(
    'X-Llmp-User',
    'The user of that user interface, such as `ana@laptop`, for the audit record; not verified, so it must not begin like who is verified (`operator:`, `person:`, `trust:`). Percent-encoded UTF-8, up to 100 printable characters.',
    { type: 'string', maxLength: 1200, pattern: '^([!-$&-~]|%[0-9A-Fa-f]{2})*$' },
  ),
  requestHeader(
    'X-Audit-Reason',
    'Reason for the change, for the audit record: percent-encoded UTF-8, up to 200 characters, without control characters.',
    { type: 'string', maxLength: 2400, pattern: '^([!-$&-~]|%[0-9A-Fa-f]{2})*$' },
  ),
  requestHeader(
    'X-Audit-Batch',
    'A UUID that the client chooses for all changes of one command or dialog: they can be undone together, and the audit log can list them as one.',
    { type: 'string', format: 'uuid' },
  ),
  requestHeader(
    'X-Llmp-Client-IP',
    'Address of the user of the user interface, for the audit record: an IPv4 or IPv6 address without a zone, such as 192.0.2.10 or 2001:db8::1. Ignored without the management token.',
    { type: 'string', maxLength: 45, pattern: '^[0-9A-Fa-f:.]+$' },
  ),
]);
