/** OpenAPI 3.1 description of the management API, generated from the declared operations and their schemas. */
import * as z from 'zod';
import { canSucceed, type Example, type Operation as Declared, TAGS } from '../../api/operation.js';
import { operations } from '../../api/operations.js';
import { extentOf, type Permission } from '../../api/permissions.js';
import * as schemas from '../../api/schemas.js';
import { ROLES } from '../../api/vocabulary.js';
import type { RefusalKind } from '../../core/refusal.js';
import { FRONT_END, HEADERS, ID, REQUEST_HEADERS } from './openapi-headers.js';
import { inputFields, type Json, schemaOf, SHAPES } from './openapi-schemas.js';
import { problemOf } from '../problems.js';

/** An operation whose refusals are typed as kinds of the core. */
interface Operation extends Declared {
  refusals: readonly RefusalKind[];
}

/** Refusals that any request may get. */
const ALWAYS: readonly RefusalKind[] = [
  'invalid_request',
  'management_token_refused',
  'session_ended',
  'request_timeout',
  'body_too_large',
  'unsupported_media_type',
  'expectation_failed',
  'too_many_attempts',
  'headers_too_large',
  'internal',
  'unavailable',
];

const ABOUT = `The management API creates and changes projects and tokens of llmp, and shows their usage.

Every request, except for the log-in of a command line, needs the management token: \`Authorization: Bearer …\`. The secret of an operator, \`sk-op-…\`, can take its place, or that of a
session of the command line, \`sk-ss-…\`. They allow what their role allows, in their projects: other operations return 403 \`not_permitted\`, and
what is not theirs 404. With the management token, \`X-Llmp-Session\` makes a request on behalf of the user of a session. HEAD works like GET without a body, and OPTIONS returns 204 with
\`Allow\`. An unsupported method returns 405 with \`Allow\`, an unknown path 404. Every error is a \`problem\`: \`error\` is for people,
\`code\` is for programs. A request that cannot be parsed returns 400, 414, 501 or 505.

Lists have pages. \`Link\` has the address of the next page and is absent on the last page; a cursor is valid only for its list, order and
filters. IDs are UUIDs, in upper or lower case. Timestamps are RFC 3339: requests may use any offset, responses use UTC. In a query,
write the \`+\` of an offset as \`%2B\`. Unknown fields and query parameters return 400. Later releases may add fields to responses:
ignore fields that you do not know.`;

/** The description with this version. Composing it blocks the event loop for a few tenths of a second. */
export function openApi(version: string): Json {
  const shared = new Shared();
  const paths: Record<string, Json> = {};
  for (const [name, operation] of Object.entries<Operation>(operations)) {
    if (!canSucceed(operation)) continue;
    const parameters = operation.path.includes('{id}') ? { parameters: [shared.refTo('parameters', 'id', ID)] } : {};
    const methods = (paths[operation.path] ??= parameters);
    methods[operation.method.toLowerCase()] = described(name, operation, shared);
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'llmp management API',
      version,
      description: ABOUT,
      contact: { name: 'The operators of this llmp instance' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The daemon that serves this description.' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ managementToken: [] }],
    paths,
    components: {
      securitySchemes: {
        managementToken: {
          type: 'http',
          scheme: 'bearer',
          description: 'The value of MANAGEMENT_TOKEN, or the secret of an operator or of a session.',
        },
      },
      schemas: { ...SHAPES, frontEnd: FRONT_END },
      ...shared.components,
      headers: HEADERS,
    },
  };
}

function described(name: string, operation: Operation, shared: Shared): Json {
  const { method, tag, summary, description, permission, body, stream, version, example = {} } = operation;
  const headers = [
    ...(stream ? ['Last-Event-ID'] : []),
    ...(method === 'GET' && !stream ? ['If-None-Match'] : []),
    ...(method !== 'GET' && version ? ['If-Match'] : []),
    'X-Request-ID',
    // Caller and reason are recorded for changes only.
    ...(method === 'GET' ? [] : ['X-Llmp-Actor', 'X-Llmp-User', 'X-Audit-Reason', 'X-Audit-Batch', 'X-Llmp-Client-IP']),
  ];
  return {
    operationId: name,
    tags: [tag],
    summary,
    description,
    ...(permission === 'public' && { security: [] }),
    parameters: [
      ...queryParameters(operation, example.query ?? {}).map((parameter) => shared.parameter(parameter)),
      ...headers.map((header) => shared.refTo('parameters', header, REQUEST_HEADERS[header] ?? {})),
    ],
    ...(body && { requestBody: { required: true, content: json(schemaOf(body), namedExamples(example.bodies)) } }),
    responses: { ...success(operation, example, shared), ...refusals(operation, shared) },
  };
}

function queryParameters({ query }: Operation, values: Record<string, unknown>): Json[] {
  if (!query) return [];
  return Object.entries(inputFields(query)).map(([name, { description, ...schema }]) => {
    const absent: { success: boolean; data?: unknown } = z.safeParse(query.shape[name] ?? z.unknown(), undefined); // Has all defaults; the JSON schema has only some of them.
    return {
      name,
      in: 'query',
      description,
      ...(!absent.success && { required: true }),
      schema: { ...schema, ...(absent.data !== undefined && { default: absent.data }) },
      ...(name in values && { example: values[name] }),
    };
  });
}

function success(
  { method, status = 200, response, list, stream, version, isUncounted, holdsSecret }: Operation,
  example: Example,
  shared: Shared,
): Json {
  if (stream) {
    const content = { 'text/event-stream': { schema: schemaOf(stream) } };
    return { 200: { description: STREAMED, headers: headersOf('X-Request-ID'), content } };
  }
  const shape = list ? { type: 'array', items: schemaOf(list) } : response && schemaOf(response);
  const headers = headersOf(
    'X-Request-ID',
    ...(method === 'GET' || (method !== 'DELETE' && version) ? ['ETag'] : []),
    ...(list ? PAGING.slice(isUncounted ? 1 : 0) : []),
  );
  const description = list
    ? 'A page of the list.'
    : holdsSecret
      ? 'Success. The response contains a secret and must not be stored.'
      : 'Success.';
  const content = json(shape, example.response === undefined ? {} : { example: example.response });
  const unchanged = {
    description: 'Not modified: the response that the client has is current.',
    headers: headersOf('X-Request-ID', 'ETag'),
  };
  return {
    [status]: { description, headers, content },
    ...(method === 'GET' && { 304: shared.refTo('responses', 'NotModified', unchanged) }),
  };
}

// OpenAPI before 3.2 cannot describe a single event. Client generators will take this schema for the whole stream.
const STREAMED = `Server-sent events until one side closes the connection. The schema describes the \`data\` of each event. Comments are sent as
heartbeats. To continue after a disconnect, send the \`id\` of the last event as \`Last-Event-ID\`.`;

const PAGING = ['X-Total-Count', 'Link'];
const HEADERS_OF_STATUS: Record<number, string[]> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

const mayAnyRole = (permission: Permission) => ROLES.every((role) => extentOf(role, permission) === 'all');

function refusals(operation: Operation, shared: Shared): Json {
  const kinds = new Map<number, RefusalKind[]>();
  const ofRoles: RefusalKind[] = mayAnyRole(operation.permission) ? [] : ['not_permitted'];
  for (const kind of [...ALWAYS, ...ofRoles, ...operation.refusals]) {
    const { status } = problemOf(kind);
    kinds.set(status, [...(kinds.get(status) ?? []), kind]);
  }
  return Object.fromEntries(
    Array.from(kinds, ([status, ofStatus]) => [
      status,
      shared.refTo('responses', ofStatus.map(pascal).join('Or'), {
        description: ofStatus.map(meaningOf).join('\n\n'),
        headers: headersOf('X-Request-ID', ...(HEADERS_OF_STATUS[status] ?? [])),
        content: json(schemaOf(schemas.problem)),
      }),
    ]),
  );
}

function meaningOf(kind: RefusalKind): string {
  const { code } = problemOf(kind);
  return `\`${code}\`: ${(schemas.PROBLEM_CODES as Record<string, string | undefined>)[code] ?? ''}`;
}

const pascal = (snake: string) => snake.replace(/(?:^|_)([a-z])/g, (_all, letter: string) => letter.toUpperCase());

const namedExamples = (bodies: Example['bodies']): Json =>
  bodies
    ? {
        examples: Object.fromEntries(
          Object.entries(bodies).map(([title, value]) => [
            pascal(title.replace(/\W+/g, '_').replace(/_(\d)/g, '$1')),
            { summary: title, value },
          ]),
        ),
      }
    : {};

const json = (schema: unknown, example: Json = {}) => ({ 'application/json': { schema, ...example } });
const headersOf = (...names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

/** Parts that several operations share and that appear once in the document. */
class Shared {
  readonly components: { parameters: Json; responses: Json } = { parameters: {}, responses: {} };

  refTo(kind: 'parameters' | 'responses', name: string, described: Json): Json {
    this.components[kind][name] = described;
    return { $ref: `#/components/${kind}/${name}` };
  }

  /** Refers to a query parameter that several operations have; describes others in place. */
  parameter(parameter: Json): Json {
    const { name, description } = parameter as { name: string; description?: unknown };
    const key = SHARED_QUERY[keyOf(name, description)];
    return key === undefined ? parameter : this.refTo('parameters', key, parameter);
  }
}

/**
 * Component names of the query parameters that several operations have with the same description. Two parameters with one name, such as
 * the outcome of an event and of an audit record, get different ones. So do parameters with the name of a schema, because client
 * generators put both into one namespace.
 */
const SHARED_QUERY: Record<string, string> = {};
const seen = new Set<string>();
const taken = new Set(Object.keys(SHAPES));
for (const { tag, query } of Object.values<Operation>(operations)) {
  for (const [name, { description }] of Object.entries(query ? inputFields(query) : {})) {
    const key = keyOf(name, description);
    if (seen.has(key) && SHARED_QUERY[key] === undefined) {
      const component = taken.has(name) ? `${tag.toLowerCase()}${pascal(name)}` : name;
      SHARED_QUERY[key] = component;
      taken.add(component);
    }
    seen.add(key);
  }
}

function keyOf(name: string, description: unknown): string {
  return `${name}: ${String(description)}`;
}
