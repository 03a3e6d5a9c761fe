/** Checks every management response against the daemon's own description of its API. */
import * as z from 'zod';
import { openApi } from '../../daemon/http/manage/openapi.js';
import type { TestResponse } from './daemon.js';

export interface Described {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  parameters: (Parameter | Ref)[];
  requestBody?: {
    content: { 'application/json': { schema: Ref; examples?: Record<string, { summary: string; value: unknown }> } };
  };
  responses: Record<string, DescribedResponse | Ref>;
}
export interface Parameter {
  name: string;
  in: string;
  description?: string;
  required?: boolean;
  deprecated?: boolean;
  schema: Record<string, unknown>;
  example?: string | number | boolean;
}
export interface DescribedResponse {
  description: string;
  headers?: Record<string, Ref>;
  content?: Record<string, { schema: object; example?: unknown }>;
}
interface Ref {
  $ref: string;
}
/** A named shape, as far as the tests read it. */
export interface Shape {
  description?: string;
  type?: string | string[];
  properties?: Record<string, Shape>;
  required?: string[];
  items?: Shape;
  [key: string]: unknown;
}
interface Document {
  openapi: string;
  security: object[];
  info: Record<string, unknown>;
  tags: { name: string; description: string }[];
  paths: Record<string, Partial<Record<string, Described>> & { parameters?: (Parameter | Ref)[] }>;
  components: {
    securitySchemes: object;
    parameters: Record<string, Parameter>;
    responses: Record<string, DescribedResponse>;
    schemas: Record<string, Shape>;
    headers: Record<string, { required: boolean }>;
  };
}

/** As the daemon serves it at /manage/openapi.json. */
export const DESCRIPTION = openApi('0.1.0') as unknown as Document;

/** The value itself, or what it refers to. */
export function resolved<Value extends object>(value: Value | Ref): Value {
  if (!('$ref' in value)) return value;
  const steps = value.$ref.replace(/^#\//, '').split('/');
  return steps.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], DESCRIPTION) as Value;
}

/** What the description says in words: about paths that it does not have, and methods that its paths do not have. */
const ELSEWHERE = [400, 401, 403, 404, 405, 408, 413, 415, 417, 429, 431, 500, 503];

/** @throws if the response is not described, or does not match its description. Paths outside of /manage are ignored. */
export function expectDescribed(method: string, target: string, answer: TestResponse): void {
  const path = target.replace(/[?#].*/, '');
  if (!/^\/manage(\/|$)/.test(path)) return;
  const complain = (what: string) => {
    throw new Error(`${method} ${path} answered ${answer.status}, ${what}: ${JSON.stringify(answer.body)}`);
  };
  const isHead = method === 'HEAD';
  const operation = operationAt(path)?.[isHead ? 'get' : method.toLowerCase()];
  if (!operation) {
    if (method === 'OPTIONS' && answer.status === 204) return;
    if (!ELSEWHERE.includes(answer.status)) complain('which the description does not have');
    if (!isHead) checkBody(schemaOf({ $ref: '#/components/schemas/problem' }), answer, complain);
    return;
  }

  const described = operation.responses[answer.status];
  if (!described) {
    complain('which the description does not have');
    return;
  }
  const response = resolved(described);
  for (const [name, { $ref }] of Object.entries(response.headers ?? {})) {
    const isRequired = DESCRIPTION.components.headers[$ref.split('/').at(-1)!]?.required;
    if (isRequired && !answer.headers.has(name)) complain(`without ${name}`);
  }
  const schema = response.content?.['application/json']?.schema;
  if (!schema || isHead) {
    if (answer.body !== null) complain('with a body');
  } else {
    checkBody(schemaOf(schema), answer, complain);
  }
}

function operationAt(path: string): Partial<Record<string, Described>> | undefined {
  const found = Object.entries(DESCRIPTION.paths).filter(([template]) =>
    new RegExp(`^${template.replace('.', '\\.').replace('{id}', '[^/]+')}$`).test(path),
  );
  // /manage/tokens/lookup is not the token "lookup".
  return (found.find(([template]) => template === path) ?? found[0])?.[1];
}

function checkBody(schema: z.ZodType, answer: TestResponse, complain: (what: string) => void): void {
  const { error } = schema.safeParse(answer.body);
  if (error) complain(`with a body which the description does not have (${z.prettifyError(error)})`);
}

/** @throws if a value does not match a schema of the document. */
export function expectShape(schema: object, value: unknown): void {
  const { error } = schemaOf(schema).safeParse(value);
  if (error) throw new Error(`${JSON.stringify(value)} is not as described: ${z.prettifyError(error)}`);
}

const compiled = new Map<string, z.ZodType>();

/**
 * The schema as it is in the document, not the one from which it was made. A client must ignore an unknown field; here it is an error, so
 * that the description has every field.
 */
function schemaOf(schema: object): z.ZodType {
  const key = JSON.stringify(schema);
  const known = compiled.get(key);
  if (known) return known;
  const local = JSON.stringify({ ...schema, $defs: DESCRIPTION.components.schemas }, (_key, value: unknown) => {
    const isShape = typeof value === 'object' && value !== null && 'properties' in value && 'type' in value;
    if (isShape && value.type === 'object') return { additionalProperties: false, ...value };
    // Tests insert rows with their own IDs.
    const isId = typeof value === 'object' && value !== null && 'format' in value && value.format === 'uuid';
    return isId ? { ...value, format: undefined } : value;
  });
  const made = z.fromJSONSchema(JSON.parse(local.replaceAll('#/components/schemas/', '#/$defs/')) as never);
  compiled.set(key, made);
  return made;
}
