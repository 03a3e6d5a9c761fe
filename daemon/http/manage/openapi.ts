/** The OpenAPI 3.1 description of the management API, made from the declared operations and their schemas. */
import { canSucceed, type Example, type Operation as Declared, TAGS } from '../../api/operation.js';
import { operations } from '../../api/operations.js';
import * as schemas from '../../api/schemas.js';
import type { RefusalKind } from '../../core/refusal.js';
import { FRONT_END, HEADERS, ID, REQUEST_HEADERS } from './openapi-headers.js';
import { inputFields, type Json, schemaOf, SHAPES } from './openapi-schemas.js';
import { problemOf } from '../problems.js';

/** Its refusals are kinds that the core knows. */
interface Operation extends Declared {
  refusals: readonly RefusalKind[];
}

/** What may befall any request. */
const ALWAYS: readonly RefusalKind[] = [
  'invalid_request',
  'management_token_refused',
  'request_timeout',
  'body_too_large',
  'unsupported_media_type',
  'expectation_failed',
  'too_many_attempts',
  'headers_too_large',
  'internal',
  'unavailable',
];

const ABOUT = `Manages the projects and tokens of llmp, and shows what they were used for.

Every path needs the management token: \`Authorization: Bearer …\`. HEAD answers as GET does, without a body; OPTIONS is 204 with
\`Allow\`; any other method is 405 with \`Allow\`, any other path 404. Every error is a \`problem\`: \`error\` is for people, \`code\` for
programs. A request that cannot be read at all is 400, 414, 501 or 505.

Lists are sent in pages. \`Link\` has the address of the next page and is absent on the last; a cursor belongs to its list, order and
filters. Ids are UUIDs and are read in any letter case. Timestamps are RFC 3339 with any offset, and are in UTC in
answers; in a query the \`+\` of an offset is written \`%2B\`. Unknown fields and query names are 400. Answers may gain fields in later releases:
ignore those that you do not know.`;

const made = new Map<string, Json>();

/** The description in which the API has this version. It is made once: that takes as long as all the rest of a daemon's start. */
export function openApi(version: string): Json {
  const description = made.get(version) ?? describe(version);
  made.set(version, description);
  return description;
}

function describe(version: string): Json {
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
    servers: [{ url: '/', description: 'The daemon that this description comes from.' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ managementToken: [] }],
    paths,
    components: {
      securitySchemes: {
        managementToken: { type: 'http', scheme: 'bearer', description: 'The value of MANAGEMENT_TOKEN.' },
      },
      schemas: { ...SHAPES, frontEnd: FRONT_END },
      ...shared.components,
      headers: HEADERS,
    },
  };
}

function described(name: string, operation: Operation, shared: Shared): Json {
  const { method, tag, summary, description, body, stream, example = {} } = operation;
  const headers = [
    ...(stream ? ['Last-Event-ID'] : []),
    ...(method === 'GET' && !stream ? ['If-None-Match'] : []),
    'X-Request-ID',
    // Who acts, and why, is recorded with changes only.
    ...(method === 'GET' ? [] : ['X-Llmp-Actor', 'X-Audit-Reason', 'X-Llmp-Client-IP']),
  ];
  return {
    operationId: name,
    tags: [tag],
    summary,
    description,
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
  const defaults: Json = query.parse({}); // All that an empty query holds. The schema says it of some only.
  return Object.entries(inputFields(query)).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    description,
    schema: { ...schema, ...(name in defaults && { default: defaults[name] }) },
    ...(name in values && { example: values[name] }),
  }));
}

function success(
  { method, status = 200, answer, list, stream, isUncounted, holdsSecret }: Operation,
  example: Example,
  shared: Shared,
): Json {
  if (stream) {
    const content = { 'text/event-stream': { schema: schemaOf(stream) } };
    return { 200: { description: STREAMED, headers: headersOf('X-Request-ID'), content } };
  }
  const shape = list ? { type: 'array', items: schemaOf(list) } : answer && schemaOf(answer);
  const headers = headersOf(
    'X-Request-ID',
    ...(method === 'GET' ? ['ETag'] : []),
    ...(list ? PAGING.slice(isUncounted ? 1 : 0) : []),
  );
  const description = list ? 'A page of the list.' : holdsSecret ? 'Done. Nobody may store this answer.' : 'Done.';
  const content = json(shape, example.answer === undefined ? {} : { example: example.answer });
  const unchanged = {
    description: 'What the client has is what there is.',
    headers: headersOf('X-Request-ID', 'ETag'),
  };
  return {
    [status]: { description, headers, content },
    ...(method === 'GET' && { 304: shared.refTo('responses', 'NotModified', unchanged) }),
  };
}

// What one event holds has no place of its own before OpenAPI 3.2. Until then generators of clients take this schema for it.
const STREAMED = `Server-sent events, as they come, until one side ends it. The schema is that of the \`data\` of each event. Comments keep the
connection from being taken for a dead one. Come back with the \`id\` of the last event as \`Last-Event-ID\`.`;

const PAGING = ['X-Total-Count', 'Link'];
const OF_STATUS: Record<number, string[]> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  429: ['Retry-After'],
  503: ['Retry-After'],
};

function refusals(operation: Operation, shared: Shared): Json {
  const kinds = new Map<number, RefusalKind[]>();
  for (const kind of [...ALWAYS, ...operation.refusals]) {
    const { status } = problemOf(kind);
    kinds.set(status, [...(kinds.get(status) ?? []), kind]);
  }
  return Object.fromEntries(
    Array.from(kinds, ([status, ofStatus]) => [
      status,
      shared.refTo('responses', ofStatus.map(pascal).join('Or'), {
        description: ofStatus.map(meaningOf).join('\n\n'),
        headers: headersOf('X-Request-ID', ...(OF_STATUS[status] ?? [])),
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

/** What several operations have in common, and stands in the document once. */
class Shared {
  readonly components: { parameters: Json; responses: Json } = { parameters: {}, responses: {} };

  refTo(kind: 'parameters' | 'responses', name: string, described: Json): Json {
    this.components[kind][name] = described;
    return { $ref: `#/components/${kind}/${name}` };
  }

  /** A query parameter that other operations have, too, is shared; others stand where they are. */
  parameter(parameter: Json): Json {
    const { name, description } = parameter as { name: string; description?: unknown };
    const key = SHARED_QUERY[keyOf(name, description)];
    return key === undefined ? parameter : this.refTo('parameters', key, parameter);
  }
}

/** Query parameters that stand in several operations with one description, and the name of each. */
const SHARED_QUERY: Record<string, string> = {};
const seen = new Set<string>();
for (const { query } of Object.values<Operation>(operations)) {
  for (const [name, { description }] of Object.entries(query ? inputFields(query) : {})) {
    const key = keyOf(name, description);
    if (seen.has(key)) SHARED_QUERY[key] = name;
    seen.add(key);
  }
}

function keyOf(name: string, description: unknown): string {
  return `${name}: ${String(description)}`;
}
