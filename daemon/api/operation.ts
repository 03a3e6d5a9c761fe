/** The declaration of a management API operation: its types. The operations themselves are in daemon/api/operations/. */
import type * as z from 'zod';
import type { Permission } from './permissions.js';
import type { Route, Routes } from './routes.js';

/** The groups of operations, in display order, each with its description. */
export const TAGS = {
  Projects:
    'A project holds the API key of a provider. Clients use the tokens of the project in place of that key. Projects cannot be deleted, only deactivated: DELETE returns 405.',
  Tokens:
    'Clients of /v1 use a token as their API key. A token expires, can have a request cap, and can be revoked at any time.',
  Usage: 'Totals of requests and model tokens.',
  Prices: 'What models cost, by the shipped price list and `PRICES_FILE`.',
  Audit: 'Records of who changed what, and when.',
  Batches: 'Changes that belong together, as the client said with `X-Audit-Batch`.',
  Events: 'Completed requests and changes, as a list and as a live stream.',
  Cache: 'Inspect and purge the response cache.',
  Status: 'The health of an instance.',
  Migrations: 'The state of the database schema.',
  Access: 'Operators with roles, who they are, and what they may do.',
  Sessions: 'Login sessions of the Admin UI and of other front ends.',
  Description: 'The description of this API.',
} as const;

export interface Operation extends Route {
  tag: keyof typeof TAGS;
  /** A title of a few words. */
  summary: string;
  description: string;
  /** Who may do it, and to what. */
  permission: Permission;
  /** What of it needs another permission. */
  parts?: readonly { what: string; permission: Permission }[];
  query?: z.ZodObject;
  /** Other accepted spellings of query parameters. OpenAPI omits them: a client generated from both would define one name twice. */
  aliases?: Record<string, string>;
  body?: z.ZodObject;
  /** Status code of a success (default: 200). */
  status?: 200 | 201;
  /** Body of a success. An operation without `response`, `list` and `stream` always fails and is left out of the OpenAPI description. */
  response?: z.ZodType;
  /** Instead of `response`: the item type of a paginated list. */
  list?: z.ZodType;
  /** Instead of `response`: the JSON in the `data` field of each server-sent event. */
  stream?: z.ZodType;
  /** With `list`: the response has no total count. */
  isUncounted?: true;
  /**
   * The fields of a project, token or session that are stored and that a change depends on: with GET they are part of the ETag, and with
   * PATCH and DELETE `If-Match` is checked against them.
   */
  version?: z.ZodObject;
  /** The response contains a secret, so it must not be stored. */
  holdsSecret?: true;
  /** Kinds of refusal (daemon/core/refusal.ts), in addition to those that any request can get. */
  refusals: readonly string[];
  example?: Example;
}

/** Examples for the OpenAPI description: a valid body or query, and a typical response. The tests send each of them. */
export interface Example<Body = unknown, Response = unknown, Query = Record<string, unknown>> {
  /** Values for some of the query parameters. */
  query?: Query;
  /** Example bodies, by a short title. */
  bodies?: Record<string, Body>;
  response?: Response;
}

/** The schema fields that an operation must declare, from the kind of success that its route declares. */
type SuccessSchema<R> = R extends { returns: 'page' }
  ? { list: z.ZodType }
  : R extends { returns: 'stream' }
    ? { stream: z.ZodType }
    : { list?: never; stream?: never };

/** Every route with its operation. */
export type Declared = { [Name in keyof Routes]: Operation & SuccessSchema<Routes[Name]> };

type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T;
type BodyOf<Op> = Op extends { body: infer Body extends z.ZodType } ? Frozen<z.input<Body>> : never;
type ResponseOf<Op> = Op extends { list: infer Item extends z.ZodType }
  ? readonly Frozen<z.input<Item>>[]
  : Op extends { response: infer Response extends z.ZodType }
    ? Frozen<z.input<Response>>
    : never;
type QueryOf<Op> = Op extends { query: infer Query extends z.ZodType }
  ? Partial<Record<keyof z.input<Query>, string | number | boolean>>
  : never;

/** Requires each example to match the schemas of its operation. */
export type Exemplified<Ops> = {
  [Name in keyof Ops]: { example?: Example<BodyOf<Ops[Name]>, ResponseOf<Ops[Name]>, QueryOf<Ops[Name]>> };
};

/** Whether the operation has a success response. Clients have no use for an operation that always fails. */
export const canSucceed = ({ response, list, stream }: Operation): boolean =>
  (response ?? list ?? stream) !== undefined;
