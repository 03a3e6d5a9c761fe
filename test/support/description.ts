/** Holds every management answer against the description that the daemon itself gives of its API. */
import * as z from 'zod';
import { openApi } from '../../daemon/http/openapi.js';
import type { TestAnswer } from './daemon.js';

export interface Described {
  operationId: string;
  summary: string;
  parameters: { name?: string; in?: string; deprecated?: boolean; schema?: object }[];
  requestBody?: { content: { 'application/json': { schema: Ref } } };
  responses: Record<
    string,
    { description: string; headers?: Record<string, Ref>; content?: { 'application/json'?: { schema: object } } }
  >;
}
interface Ref {
  $ref: string;
}
interface Document {
  openapi: string;
  security: object[];
  paths: Record<string, Partial<Record<string, Described>> & { parameters?: { name: string }[] }>;
  components: {
    securitySchemes: object;
    parameters: object;
    schemas: Record<string, { properties?: object; required?: string[] }>;
    headers: Record<string, { required: boolean }>;
  };
}

/** As the daemon serves it at /manage/openapi.json. */
export const DESCRIPTION = openApi('0.1.0') as unknown as Document;

/** What the description says in words: of paths it does not have, and of methods that its paths do not have. */
const ELSEWHERE = [400, 401, 404, 405, 429];

/** @throws when the answer is not described, or is not what is described. Paths beside /manage are not looked at. */
export function expectDescribed(method: string, target: string, answer: TestAnswer): void {
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

  const response = operation.responses[answer.status];
  if (!response) {
    complain('which the description does not have');
    return;
  }
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

function checkBody(schema: z.ZodType, answer: TestAnswer, complain: (what: string) => void): void {
  const { error } = schema.safeParse(answer.body);
  if (error) complain(`with a body which the description does not have (${z.prettifyError(error)})`);
}

const compiled = new Map<string, z.ZodType>();

/** The schema as it stands in the document, not the one it was made from. */
function schemaOf(schema: object): z.ZodType {
  const key = JSON.stringify(schema);
  const known = compiled.get(key);
  if (known) return known;
  const local = JSON.stringify({ ...schema, $defs: DESCRIPTION.components.schemas });
  const made = z.fromJSONSchema(JSON.parse(local.replaceAll('#/components/schemas/', '#/$defs/')) as never);
  compiled.set(key, made);
  return made;
}
