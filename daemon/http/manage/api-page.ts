/** docs/api.md: the management API as Markdown, from its OpenAPI description. */
import type { Json } from './openapi-schemas.js';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;

interface Described {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: Json[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, Json>;
}

interface Media {
  schema?: Json;
  example?: unknown;
  examples?: Record<string, { summary?: string; value: unknown }>;
}

/** Request header fields that every operation takes: the introduction of the page describes them once. */
const COMMON_HEADERS = ['X-Request-ID', 'X-Llmp-Actor', 'X-Audit-Reason', 'X-Llmp-Client-IP'];

/** @param document what `openApi` returns. */
export function apiPage(document: Json): string {
  const { tags, paths, info, components } = document as {
    tags: { name: string; description: string }[];
    paths: Record<string, Partial<Record<(typeof METHODS)[number], Described>>>;
    info: { description: string };
    components: Record<string, Record<string, Json>>;
  };
  /** What a `$ref` names, or the thing itself. */
  const resolved = (it: Json): Json => {
    const [, kind = '', name = ''] = /^#\/components\/([^/]+)\/(.+)$/.exec(textOf(it.$ref)) ?? [];
    return components[kind]?.[name] ?? it;
  };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    METHODS.flatMap((method) => {
      const operation = methods[method];
      return operation ? [{ heading: `${method.toUpperCase()} ${path}`, operation }] : [];
    }),
  );
  const ofTag = (tag: string) => operations.filter(({ operation }) => operation.tags.includes(tag));
  const parts = [
    '<!-- Written by `npm run docs` from daemon/api/. Do not edit it here. -->',
    '# Management API',
    'A running daemon serves this description as OpenAPI 3.1 at `GET /manage/openapi.json`, from which generators make clients.',
    info.description,
    '## Request headers that every operation accepts',
    table(
      ['Header', 'Meaning'],
      COMMON_HEADERS.flatMap((name) => {
        const it = components.parameters?.[name];
        return it ? [[`\`${name}\``, textOf(it.description)]] : [];
      }),
    ),
    ...tags.flatMap(({ name, description }) => [
      `## ${name}`,
      description,
      ...ofTag(name).flatMap(({ heading, operation }) => [`### ${heading}`, ...operationParts(operation, resolved)]),
    ]),
    '## Schemas',
    ...Object.entries(components.schemas ?? {}).flatMap(([name, schema]) => [`### ${name}`, ...schemaParts(schema)]),
  ];
  return `${parts.join('\n\n')}\n`;
}

function operationParts(operation: Described, resolved: (it: Json) => Json): string[] {
  const parameters = (operation.parameters ?? [])
    .map(resolved)
    .filter(({ name }) => !COMMON_HEADERS.includes(textOf(name)));
  return [
    `**${operation.summary}.** ${operation.description ?? ''}`.trim(),
    ...(parameters.length === 0
      ? []
      : [
          table(
            ['Parameter', 'In', 'Meaning'],
            parameters.map((it) => [`\`${textOf(it.name)}\``, textOf(it.in), textOf(it.description)]),
          ),
        ]),
    ...Object.values(operation.requestBody?.content ?? {}).flatMap((media) => mediaParts('Request body', media)),
    ...Object.entries(operation.responses)
      .filter(([status]) => status.startsWith('2'))
      .flatMap(([status, response]) => responseParts(status, resolved(response))),
    `Other statuses: ${Object.keys(operation.responses)
      .filter((status) => !status.startsWith('2'))
      .join(', ')}.`,
  ];
}

function responseParts(status: string, response: Json): string[] {
  const content = Object.values((response.content ?? {}) as Record<string, Media>);
  const [media] = content;
  return media ? mediaParts(`Response ${status}`, media) : [`Response ${status}: ${textOf(response.description)}`];
}

/** The schema by its name, and the first example. */
function mediaParts(title: string, { schema, example, examples }: Media): string[] {
  const [first] = Object.values(examples ?? {});
  const shown = example ?? first?.value;
  const caption = `${title}${schema ? `: ${schemaName(schema)}` : ''}`;
  if (shown === undefined) return [caption];
  const isText = typeof shown === 'string';
  return [
    caption,
    ['```' + (isText ? 'text' : 'json'), isText ? shown.trimEnd() : JSON.stringify(shown, null, 2), '```'].join('\n'),
  ];
}

function schemaName(schema: Json): string {
  const name = /\/([^/]+)$/.exec(textOf(schema.$ref))?.[1];
  if (name !== undefined) return `[${name}](#${name.toLowerCase()})`;
  return schema.type === 'array'
    ? `a list of ${schemaName((schema.items ?? {}) as Json)}`
    : textOf(schema.type) || 'any';
}

function schemaParts(schema: Json): string[] {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>);
  const required = (schema.required ?? []) as string[];
  const about = typeof schema.description === 'string' ? [schema.description] : [];
  const choices = ((schema.oneOf ?? schema.anyOf ?? []) as Json[]).map(schemaName);
  const values = Array.isArray(schema.enum)
    ? [`One of: ${schema.enum.map((it) => `\`${String(it)}\``).join(', ')}.`]
    : [];
  return [
    ...about,
    ...values,
    ...(choices.length === 0 ? [] : [`One of ${choices.join(', ')}.`]),
    ...(properties.length === 0
      ? []
      : [
          table(
            ['Field', 'Type', 'Required', 'Meaning'],
            properties.map(([name, it]) => [
              `\`${name}\``,
              typeOf(it),
              required.includes(name) ? 'yes' : 'no',
              textOf(it.description),
            ]),
          ),
        ]),
  ];
}

function typeOf(schema: Json): string {
  if (typeof schema.$ref === 'string' || schema.type === 'array') return schemaName(schema);
  const choices = (schema.oneOf ?? schema.anyOf) as Json[] | undefined;
  if (choices) return choices.map(typeOf).join(' or ');
  return Array.isArray(schema.type) ? schema.type.join(' or ') : textOf(schema.type) || 'any';
}

function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(inCell).join(' | ')} |`;
  return [line(titles), `| ${titles.map(() => '---').join(' | ')} |`, ...rows.map(line)].join('\n');
}

const textOf = (it: unknown) => (typeof it === 'string' ? it : '');
const inCell = (text: string) => text.replaceAll('|', '\\|').replace(/\s*\n\s*/g, ' ');
