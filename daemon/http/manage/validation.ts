/** Strict validation of management requests. An error lists all problems at once, with the accepted values. */
import type { Request } from 'express';
import * as z from 'zod';
import { holdsSecret } from '../../api/vocabulary.js';
import { Refusal } from '../../core/refusal.js';

const invalid = (message: string) => new Refusal('invalid_request', message);

/** @throws {Refusal} */
export function parseBody<Schema extends z.ZodObject>(schema: Schema, body: unknown): z.output<Schema> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalid('the body must be a JSON object');
  return parse(schema, body as Record<string, unknown>, 'field');
}

/** Parses a query; each parameter may appear at most once. @throws {Refusal} */
export function parseQuery<Schema extends z.ZodObject>(
  schema: Schema,
  req: Request,
  aliases: Record<string, string> = {},
): z.output<Schema> {
  const { search, searchParams } = new URL(req.originalUrl, 'http://daemon');
  if (!isDecodable(search)) throw invalid('the query must be percent-encoded UTF-8');
  const query = new Map<string, string>();
  for (const [written, value] of searchParams) {
    // `hasOwn`, because the name may be one that every object has, such as `constructor`.
    const name = (Object.hasOwn(aliases, written) && aliases[written]) || written;
    // A list of values would widen a filter instead of narrowing it.
    if (query.has(name)) throw invalid(`${name} is given more than once`);
    if (name !== 'cursor' && holdsSecret(value)) throw invalid(`${name} contains a secret, which must not be in a URL`);
    query.set(name, value);
  }
  return parse(schema, Object.fromEntries(query), 'query parameter');
}

/** URLSearchParams would replace invalid sequences, and search for something that the client did not send. */
function isDecodable(search: string): boolean {
  try {
    decodeURIComponent(search);
    return true;
  } catch {
    return false;
  }
}

function parse<Schema extends z.ZodObject>(
  schema: Schema,
  input: Record<string, unknown>,
  what: 'field' | 'query parameter',
): z.output<Schema> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => {
    if (issue.code === 'unrecognized_keys') {
      return `unknown ${what}: ${issue.keys.map((key) => [...issue.path, key].join('.')).join(', ')}`;
    }
    const field = String(issue.path[0]);
    return `${field} ${field in input ? 'must be' : 'is required:'} ${descriptionOf((schema.shape as Record<string, z.ZodType | undefined>)[field])}`;
  });
  throw invalid([...new Set(problems)].join('; '));
}

function descriptionOf(field: z.ZodType | undefined): string {
  if (field?.description !== undefined) return field.description;
  const isWrapper = field instanceof z.ZodOptional || field instanceof z.ZodDefault;
  return isWrapper ? descriptionOf(field.unwrap() as z.ZodType) : 'valid';
}
