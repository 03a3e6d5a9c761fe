/** The wire shapes (daemon/api/schemas.ts) as JSON Schema, in the form that client generators support best. */
import * as z from 'zod';
import type { Operation } from '../../api/operation.js';
import { operations } from '../../api/operations.js';
import * as schemas from '../../api/schemas.js';

export type Json = Record<string, unknown>;

const SCHEMA_REF_PREFIX = '#/components/schemas/';

const NAMED = z.registry<{ id: string }>();
for (const [id, schema] of Object.entries(schemas)) {
  const isShape = schema instanceof z.ZodObject || schema instanceof z.ZodDiscriminatedUnion;
  // Queries are described as parameters.
  if (isShape && !id.endsWith('Query')) NAMED.add(schema, { id });
}

const BODIES: ReadonlySet<z.ZodType> = new Set(
  Object.values<Operation>(operations).flatMap(({ body }) => (body ? [body] : [])),
);

/** All named shapes by name. */
export const SHAPES: Record<string, Json> = Object.fromEntries(
  Object.entries(
    z.toJSONSchema(NAMED, { io: 'input', uri: (id) => SCHEMA_REF_PREFIX + id, override: simplify }).schemas,
  ).map(([id, schema]) => [id, bare(schema)]),
);
for (const schema of BODIES) {
  const shape = SHAPES[NAMED.get(schema)?.id ?? ''];
  // Unknown fields in a request body are refused. Responses may gain fields, which must not break clients.
  if (shape) shape.additionalProperties = false;
}

/** A reference for a named shape; the schema itself for any other. */
export function schemaOf(schema: z.ZodType): Json {
  const id = NAMED.get(schema)?.id;
  if (id !== undefined) return { $ref: SCHEMA_REF_PREFIX + id };
  if (schema instanceof z.ZodArray) return { type: 'array', items: schemaOf(schema.element as z.ZodType) };
  return bare(z.toJSONSchema(schema, { override: simplify }));
}

/** The fields of a query or body, each with its description and accepted values. */
export function inputFields(schema: z.ZodObject): Record<string, Json> {
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input', override: simplify });
  return properties as Record<string, Json>;
}

// The document's own `$schema` and addresses apply to all schemas.
function bare({ $schema: _dialect, $id: _address, ...schema }: Json): Json {
  return schema;
}

function simplify({ zodSchema, jsonSchema }: { zodSchema: unknown; jsonSchema: Json }): void {
  if (typeof jsonSchema.about === 'string') {
    const { type, format, enum: values } = jsonSchema;
    const isSaid = type === 'boolean' || format !== undefined || values !== undefined;
    jsonSchema.description = isSaid
      ? jsonSchema.about
      : `${jsonSchema.about} Accepts ${String(jsonSchema.description)}.`;
    delete jsonSchema.about;
  }
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  foldNull(jsonSchema);
  if (zodSchema instanceof z.ZodDiscriminatedUnion) discriminate(zodSchema, jsonSchema);
}

/** Folds "this or null" into one type: many generators create a class for each `anyOf`. */
function foldNull(schema: Json): void {
  const [one, other, ...more] = (schema.anyOf ?? []) as (Json | undefined)[];
  if (one?.type === undefined || other?.type !== 'null' || more.length > 0) return;
  delete schema.anyOf;
  const { description = one.description } = schema;
  Object.assign(schema, one, { type: [one.type, 'null'], description });
  if (Array.isArray(one.enum)) schema.enum = [...(one.enum as unknown[]), null];
}

/** Adds a discriminator that maps a field's values to shapes, for generators that do not try each shape. */
function discriminate(union: z.ZodDiscriminatedUnion, schema: Json): void {
  const { discriminator: propertyName } = union.def;
  const mapping: Record<string, string> = {};
  for (const option of union.def.options as z.ZodObject[]) {
    const { id } = NAMED.get(option) ?? {};
    const field = option.shape[propertyName] as z.ZodLiteral | z.ZodEnum;
    const values = field instanceof z.ZodEnum ? field.options : [...field.values];
    for (const value of values) mapping[String(value)] = `${SCHEMA_REF_PREFIX}${id ?? ''}`;
  }
  schema.discriminator = { propertyName, mapping };
}
