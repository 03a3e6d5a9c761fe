/** What is declared of an operation of the management API. The operations themselves are in daemon/api/operations/. */
import type * as z from 'zod';
import type { Route, Routes } from './routes.js';

/** The groups of operations, in the order in which they are shown, with what each is about. */
export const TAGS = {
  Projects:
    'A project stands for a key of a provider. Its tokens are used in place of that key. Projects are never deleted, but deactivated: DELETE is 405.',
  Tokens:
    'A token is what a client of /v1 uses as its API key. It expires, may have a cap, and can be revoked at any time.',
  Usage: 'What tokens were used for.',
  Audit: 'Who changed what, and when.',
  Events: 'What happens, as it happens.',
  Cache: 'Answers that are kept and given again.',
  Status: 'How an instance is.',
  Migrations: 'The state of the database schema.',
  Sessions: 'Logging in to the Admin UI, or to another front end.',
  Description: 'The description of this API.',
} as const;

export interface Operation extends Route {
  tag: keyof typeof TAGS;
  /** A few words, as a title. */
  summary: string;
  description: string;
  query?: z.ZodObject;
  /** Other names under which a query name is accepted. They are not described: a client made from both would have one name twice. */
  aliases?: Record<string, string>;
  body?: z.ZodObject;
  /** Of the success; 200 unless stated. */
  status?: 200 | 201;
  /** The success's body. An operation with neither this nor `list` nor `stream` is always refused, and not described. */
  answer?: z.ZodType;
  /** In place of `answer`: what the success is a page of. */
  list?: z.ZodType;
  /** In place of `answer`: what each of the server-sent events that are the success holds, as JSON. */
  stream?: z.ZodType;
  /** With `list`: how many there are on all pages is not said. */
  isUncounted?: true;
  /** The answer is the only one that ever holds a secret, and nobody may store it. */
  holdsSecret?: true;
  /** Kinds of refusal (daemon/core/refusal.ts) beside those that may befall any request. */
  refusals: readonly string[];
  example?: Example;
}

/** For the OpenAPI description: a body or a query that is accepted as it stands, and an answer as it comes. The tests send each of them. */
export interface Example<Body = unknown, Answer = unknown, Query = Record<string, unknown>> {
  /** Values for some of the query names. */
  query?: Query;
  /** Each under a short name that says what it does. */
  bodies?: Record<string, Body>;
  answer?: Answer;
}

/** What a route says its success is, is what has a schema. */
type Given<R> = R extends { gives: 'page' }
  ? { list: z.ZodType }
  : R extends { gives: 'stream' }
    ? { stream: z.ZodType }
    : { list?: never; stream?: never };

/** Every route with its operation. */
export type Declared = { [Name in keyof Routes]: Operation & Given<Routes[Name]> };

type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T;
type BodyOf<Op> = Op extends { body: infer Body extends z.ZodType } ? Frozen<z.input<Body>> : never;
type AnswerOf<Op> = Op extends { list: infer Item extends z.ZodType }
  ? readonly Frozen<z.input<Item>>[]
  : Op extends { answer: infer Answer extends z.ZodType }
    ? Frozen<z.input<Answer>>
    : never;
type QueryOf<Op> = Op extends { query: infer Query extends z.ZodType }
  ? Partial<Record<keyof z.input<Query>, string | number | boolean>>
  : never;

/** Examples that fit the shapes of their operations. */
export type Exemplified<Ops> = {
  [Name in keyof Ops]: { example?: Example<BodyOf<Ops[Name]>, AnswerOf<Ops[Name]>, QueryOf<Ops[Name]>> };
};

/** Whether an operation is ever anything but refused: a client could do nothing with one that is not. */
export const canSucceed = ({ answer, list, stream }: Operation): boolean => (answer ?? list ?? stream) !== undefined;
