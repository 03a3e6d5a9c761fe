/** The header fields of the management API, and the id in its paths, as OpenAPI describes them. */
type Json = Record<string, unknown>;

const TEXT = { type: 'string' };
const COUNT = { type: 'integer', format: 'int64', minimum: 0 };

export const ID = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'An id. It is read in any letter case.',
  schema: { type: 'string', format: 'uuid' },
};

const header = (description: string, schema: Json, required = true) => ({ description, required, schema });

/** Of answers. */
export const HEADERS = {
  'X-Request-ID': header("The client's own id of the request if it gave a harmless one, else a new one.", TEXT),
  ETag: header('Changes with whatever the answer shows.', TEXT),
  'X-Total-Count': header('How many entries there are on all pages.', COUNT),
  Link: header('The next page, `rel="next"`; absent on the last.', TEXT, false),
  'WWW-Authenticate': header('`Bearer`', TEXT),
  'Retry-After': header('After how many seconds to try again.', COUNT),
};

const requestHeader = (name: string, description: string, schema: Json = TEXT): [string, Json] => [
  name,
  { name, in: 'header', description, schema },
];

/** What `X-Llmp-Actor` may be. A shape of its own, so that clients have one type for it and not one for each operation. */
export const FRONT_END = { type: 'string', enum: ['cli', 'tui', 'admin'], description: 'A front end of llmp.' };

/** Of requests. */
export const REQUEST_HEADERS: Record<string, Json> = Object.fromEntries([
  requestHeader(
    'If-None-Match',
    'The `ETag` of an answer that the client has. If nothing has changed since, the answer is 304.',
  ),
  requestHeader(
    'Last-Event-ID',
    'The `id` of the last event that the client has. What came after it is sent, as far as it is kept.',
  ),
  requestHeader('X-Request-ID', 'Names the request in logs and audit records: 1 to 64 letters, digits, `_` and `-`.'),
  requestHeader('X-Llmp-Actor', 'The front end that acts, for the audit record. Other clients leave it out.', {
    $ref: '#/components/schemas/frontEnd',
  }),
  requestHeader(
    'X-Audit-Reason',
    'Why, for the audit record: percent-encoded UTF-8, at most 200 characters, without control characters.',
    { type: 'string', maxLength: 2400, pattern: '^([!-$&-~]|%[0-9A-Fa-f]{2})*$' },
  ),
  requestHeader(
    'X-Llmp-Client-IP',
    "The address of the front end's user, for the audit record: an IPv4 or IPv6 address without a zone, such as 192.0.2.10 or 2001:db8::1.",
    { type: 'string', maxLength: 45, pattern: '^[0-9A-Fa-f:.]+$' },
  ),
]);
