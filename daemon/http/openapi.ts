/** The OpenAPI 3.1 description of the management API, made from the declared operations and their schemas. */
import * as z from 'zod';
import { type Operation, operations } from '../api/operations.js';
import * as schemas from '../api/schemas.js';
import type { RefusalKind } from '../core/refusal.js';
import { problemOf } from './problems.js';

type Json = Record<string, unknown>;

/** What may befall any request. */
const ALWAYS: readonly RefusalKind[] = [
  'invalid_request',
  'management_token_refused',
  'request_timeout',
  'body_too_large',
  'unsupported_media_type',
  'too_many_attempts',
  'internal',
  'unavailable',
];

const ABOUT = `Every path is behind the management token. HEAD answers as GET does, without a body; OPTIONS is 204 with
\`Allow\`, or, where a browser asks for a page, with what that may do; any other method is 405 with \`Allow\`, any other
path 404. Errors are \`problem\`s: \`error\` is for people, \`code\` for programs. Lists go on where \`Link\` says; a
cursor belongs to its list, order and filters.`;

export function openApi(version: string): Json {
  const paths: Record<string, Json> = {};
  for (const [name, operation] of Object.entries<Operation>(operations)) {
    const methods = (paths[operation.path] ??= operation.path.includes('{id}') ? { parameters: [ID] } : {});
    methods[operation.method.toLowerCase()] = described(name, operation);
  }
  return {
    openapi: '3.1.1',
    info: { title: 'llmp management API', version, description: ABOUT },
    servers: [{ url: '/' }],
    security: [{ managementToken: [] }],
    paths,
    components: {
      securitySchemes: {
        managementToken: { type: 'http', scheme: 'bearer', description: 'The value of MANAGEMENT_TOKEN.' },
      },
      schemas: SHAPES,
      headers: HEADERS,
      parameters: PARAMETERS,
    },
  };
}

function described(name: string, operation: Operation): Json {
  const { method, summary, description, body, stream } = operation;
  return {
    operationId: name,
    summary,
    ...(description !== undefined && { description }),
    parameters: [
      ...queryParameters(operation),
      ...(stream ? [refTo('parameters', 'Last-Event-ID')] : []),
      ...(method === 'GET' && !stream ? [refTo('parameters', 'If-None-Match')] : []),
      ...['X-Request-ID', 'X-Llmp-Actor', 'X-Audit-Reason', 'X-Llmp-Client-IP'].map((it) => refTo('parameters', it)),
    ],
    ...(body && { requestBody: { required: true, content: json(schemaOf(body)) } }),
    responses: { ...success(operation), ...refusals(operation) },
  };
}

function queryParameters({ query, aliases = {} }: Operation): Json[] {
  if (!query) return [];
  const { properties = {} } = z.toJSONSchema(query, { io: 'input' });
  const defaults: Json = query.parse({}); // All that an empty query holds. The schema says it of some only.
  const parameter = (name: string, described: unknown) => {
    const { description, ...schema } = described as Json;
    return {
      name,
      in: 'query',
      description,
      schema: { ...schema, ...(name in defaults && { default: defaults[name] }) },
    };
  };
  const own = Object.entries(properties).map(([name, schema]) => parameter(name, schema));
  const others = Object.entries(aliases).map(([alias, name]) => ({
    ...parameter(alias, properties[name]),
    description: `The same as ${name}.`,
    deprecated: true,
  }));
  return [...own, ...others];
}

function success({ method, status = 200, answer, list, stream, isUncounted }: Operation): Json {
  if (stream) return { 200: { description: STREAMED, headers: headersOf('X-Request-ID'), content: events(stream) } };
  const shape = list ? { type: 'array', items: schemaOf(list) } : answer && schemaOf(answer);
  if (!shape) return {};
  const headers = headersOf(
    'X-Request-ID',
    ...(method === 'GET' ? ['ETag'] : []),
    ...(list ? PAGING.slice(isUncounted ? 1 : 0) : []),
  );
  return {
    [status]: { description: 'Done.', headers, content: json(shape) },
    ...(method === 'GET' && { 304: { description: 'What the client has is what there is.', headers } }),
  };
}

const STREAMED = `Server-sent events, as they come, until one side ends it. Comments keep the connection from being taken for a
dead one. Come back with the \`id\` of the last event as \`Last-Event-ID\`.`;

// What one event holds has no place of its own before OpenAPI 3.2, whose `itemSchema` this is.
const events = (stream: z.ZodType) => ({
  'text/event-stream': { schema: { type: 'string' }, 'x-itemSchema': { data: schemaOf(stream) } },
});

const PAGING = ['X-Total-Count', 'Link'];
const OF_STATUS: Record<number, string[]> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

function refusals(operation: Operation): Json {
  const responses: Record<number, { description: string } & Json> = {};
  for (const kind of [...ALWAYS, ...(operation.refusals as readonly RefusalKind[])]) {
    const { status, code } = problemOf(kind);
    const before = responses[status];
    responses[status] = {
      description: before ? `${before.description}, \`${code}\`` : `\`${code}\``,
      headers: headersOf('X-Request-ID', ...(OF_STATUS[status] ?? [])),
      content: json(schemaOf(schemas.problem)),
    };
  }
  return responses;
}

const refTo = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });
const json = (schema: unknown) => ({ 'application/json': { schema } });
const headersOf = (...names: string[]) => Object.fromEntries(names.map((name) => [name, refTo('headers', name)]));

const NAMED = z.registry<{ id: string }>();
for (const [id, schema] of Object.entries(schemas)) {
  const isShape = schema instanceof z.ZodObject || schema instanceof z.ZodDiscriminatedUnion;
  // Queries are described parameter by parameter.
  if (isShape && !id.endsWith('Query')) NAMED.add(schema, { id });
}

// The document's own dialect and addresses hold for all of them.
const bare = ({ $schema: _dialect, $id: _address, ...schema }: Json): Json => schema;

const SHAPES = Object.fromEntries(
  Object.entries(z.toJSONSchema(NAMED, { io: 'input', uri: (id) => `#/components/schemas/${id}` }).schemas).map(
    ([id, schema]) => [id, bare(schema)],
  ),
);

function schemaOf(schema: z.ZodType): Json {
  const id = NAMED.get(schema)?.id;
  return id === undefined ? bare(z.toJSONSchema(schema)) : refTo('schemas', id);
}

const TEXT = { type: 'string' };
const COUNT = { type: 'integer', minimum: 0 };

const ID = { name: 'id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } };

const header = (description: string, schema: Json, required = true) => ({ description, required, schema });

const HEADERS = {
  'X-Request-ID': header("The client's own id of the request if it gave a harmless one, else a new one.", TEXT),
  ETag: header('Changes with whatever the answer shows.', TEXT),
  'X-Total-Count': header('How many there are on all pages.', COUNT),
  Link: header('The next page, `rel="next"`; absent on the last.', TEXT, false),
  'WWW-Authenticate': header('`Bearer`', TEXT),
  Allow: header('The methods that the path has.', TEXT),
  'Retry-After': header('Seconds.', COUNT),
};

const requestHeader = (name: string, description: string, schema: Json = TEXT) => [
  name,
  { name, in: 'header', description, schema },
];

const PARAMETERS = Object.fromEntries([
  requestHeader('If-None-Match', 'The `ETag` of an answer the client has.'),
  requestHeader(
    'Last-Event-ID',
    'The `id` of the last event that the client has. What came after it is sent, as far as it is kept.',
  ),
  requestHeader('X-Request-ID', 'Names the request in logs and audit records.'),
  requestHeader('X-Llmp-Actor', 'The front end that acts, for the audit record.', { enum: ['cli', 'tui', 'admin'] }),
  requestHeader('X-Audit-Reason', 'Why, for the audit record: percent-encoded UTF-8, at most 200 characters.'),
  requestHeader('X-Llmp-Client-IP', "The browser's address, for the audit record."),
]) as Json;
