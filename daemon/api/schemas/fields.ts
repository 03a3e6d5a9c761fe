/**
 * Field types of the management API's schemas.
 *
 * A request field has two texts: its `description` completes the error message "… must be …", and `about` explains the field. The
 * OpenAPI description joins the two. A response field has a `description` only.
 */
import * as z from 'zod';
import { isName } from '../names.js';
import { timestampMs } from '../timestamp.js';
import {
  DEFAULT_PAGE_SIZE,
  MAX_PAGE_SIZE,
  plainName,
  SPAN_PATTERN,
  spanMs,
  STATUS_LIST_PATTERN,
  TOOK_PATTERN,
  tookMs,
} from '../vocabulary.js';

/** Adds the explanation of a request field: one or more sentences. */
export const about = <Schema extends z.ZodType>(schema: Schema, sentences: string): Schema =>
  schema.meta({ about: sentences });

type Described = {
  minLength?: number;
  maxLength?: number;
  /** Must work in every regular expression engine: without `\p{…}`, `\u…`, lookaround, `\d` and `\w`. */
  pattern?: string;
};

/**
 * A string that `accepts` validates. Its JSON Schema may be less strict, because a pattern that works in every language cannot
 * express every rule; `words` must describe the rest.
 */
const text = (accepts: (text: string) => boolean, described: Described, words: string, from = z.string()) =>
  from.refine(accepts).meta(described).describe(words);
const matching = (pattern: RegExp) => (written: string) => pattern.test(written);

export const wholeNumber = (from: number, to: number) =>
  z.int().min(from).max(to).describe(`a whole number from ${from} to ${to}`);

export const flag = z.boolean().describe('true or false');

/** Control characters, in a notation that every engine supports. */
const CONTROL = '\\x00-\\x1f\\x7f-\\x9f';
export const name = text(
  isName,
  { minLength: 1, maxLength: 100, pattern: `^[^${CONTROL}]*[^\\s${CONTROL}][^${CONTROL}]*$` },
  '1 to 100 characters, not only spaces, without control characters, characters that change the writing direction, and secrets',
  z.string().overwrite(plainName),
);

/** An ID: a UUID, accepted in any letter case. A value that is not a UUID is accepted and matches nothing. */
export const id = z
  .string()
  .min(1)
  .max(64)
  .toLowerCase()
  .meta({ format: 'uuid', minLength: undefined, maxLength: undefined })
  .describe('an ID');

// It becomes part of a header, so only visible ASCII is allowed.
export const upstreamKey = text(
  matching(/^[\x21-\x7e]{1,512}$/),
  { minLength: 1, maxLength: 512, pattern: '^[\\x21-\\x7e]*$' },
  'the upstream key: 1 to 512 visible ASCII characters',
);

// The daemon also applies the rules of UPSTREAM_BASE_URL (config/urls.ts).
export const upstreamBaseUrl = text(
  matching(/^https?:\/\/[\x21-\x7e]{1,480}$/i),
  { maxLength: 488, pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[\\x21-\\x7e]*$' },
  'an https URL such as https://api.openai.com, at most 488 characters',
);

// The same maximum length as a request target. The daemon also applies the rules for those targets (daemon/http/request-head.ts).
export const cachedUrl = text(
  (url) => url.length <= 8192 && url.startsWith('/'),
  { maxLength: 8192, pattern: '^/' },
  'a path that is forwarded, such as /v1/models, in its plain form, with its query if it has one, at most 8 KiB',
);

// Queries: each value arrives as a string, but is described with the type that it represents.

export const queryFlag = z
  .enum(['true', 'false'])
  .transform((written) => written === 'true')
  .describe('true or false')
  .meta({ type: 'boolean', enum: undefined });

export const queryNumber = (from: number, to: number) =>
  z
    .string()
    .regex(/^\d{1,10}$/)
    .transform(Number)
    .pipe(z.int().min(from).max(to))
    .describe(`a whole number from ${from} to ${to}`)
    .meta({ type: 'integer', minimum: from, maximum: to, pattern: undefined });

export const oneOf = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values).describe(`one of ${values.join(', ')}`);

const TIMESTAMP = '[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})';
const A_TIMESTAMP = 'an RFC 3339 timestamp, such as 2030-01-31T12:00:00Z or 2030-01-31T13:00:00+01:00';
const isSpan = (written: string) => spanMs(written) !== undefined;
const isTimestamp = (written: string) => timestampMs(written) !== null;

/** A time. */
export const time = text(isTimestamp, { pattern: `^${TIMESTAMP}$` }, A_TIMESTAMP);

/** A time or a duration, which the daemon applies to its clock on each request. So the query, and thus its cursors, stay valid as time passes. */
export const timeAhead = text(
  (written) => isSpan(written) || isTimestamp(written),
  { pattern: `^(-?${SPAN_PATTERN}|${TIMESTAMP})$` },
  `${A_TIMESTAMP}, or a duration from now such as 2h, 7d, 2w or -30m`,
);
export const timeAgo = text(
  (written) => (isSpan(written) && !written.startsWith('-')) || isTimestamp(written),
  { pattern: `^(${SPAN_PATTERN}|${TIMESTAMP})$` },
  `${A_TIMESTAMP}, or a duration before now such as 30m, 2h, 7d or 2w`,
);

/** A duration. */
export const span = text(
  (written) => isSpan(written) && !written.startsWith('-'),
  { pattern: `^${SPAN_PATTERN}$` },
  'a duration such as 30m, 2h, 7d or 2w',
);

/** Up to `most` values of which one must match; with a leading `!`, none may match. */
export const selection = (one: string, most: number, what: string) =>
  z
    .string()
    .regex(new RegExp(`^!?${one}(?:,${one}){0,${most - 1}}$`))
    .describe(`${what}, or several separated by commas; a leading ! excludes them`);

/** IDs to include, or with a leading `!` to exclude. A value that is not an ID is accepted and matches nothing. */
export const idSelection = selection('[^,!]{1,64}', 20, 'an ID')
  .toLowerCase()
  .meta({ pattern: '^!?[0-9A-Fa-f-]{36}(,[0-9A-Fa-f-]{36}){0,19}$' });

// A NUL would end the pattern in SQLite, and an empty pattern would match every name.
export const partOfText = text(
  matching(/^\P{Cc}{1,100}$/u),
  { minLength: 1, maxLength: 100, pattern: `^[^${CONTROL}]*$` },
  '1 to 100 characters, without control characters',
  z.string().overwrite((part) => part.normalize('NFC')), // As names are stored.
);

export const textWithWords = text(
  matching(/^(?=.*[\p{L}\p{N}])\P{Cc}{1,100}$/u),
  { minLength: 1, maxLength: 100, pattern: `^[^${CONTROL}]*$` },
  '1 to 100 characters, with at least one letter or digit, without control characters',
);

const WORD = `!?(?:"[^"${CONTROL}]{1,100}"|[^\\s"!${CONTROL}][^\\s"${CONTROL}]{0,99})`;
export const words = z
  .string()
  .overwrite((written) => written.normalize('NFC'))
  .regex(new RegExp(`^${WORD}(?: ${WORD}){0,9}$`, 'u'))
  .describe('1 to 10 words separated by spaces; words with spaces in double quotes, excluded words with a leading !');

/** Statuses and status classes, such as `429` or `4xx,5xx`. */
export const statuses = z
  .string()
  .regex(STATUS_LIST_PATTERN)
  .describe('statuses or status classes, separated by commas, such as 429 or 4xx,5xx');

/** How long a request took. */
export const took = text(
  (written) => tookMs(written) !== undefined,
  { pattern: `^${TOOK_PATTERN}$` },
  'a duration such as 500ms, 2s or 1m',
);

export const cursor = z.string().min(1).max(1000).describe('the cursor of a Link header');

export const paging = {
  limit: about(queryNumber(1, MAX_PAGE_SIZE), 'Maximum number of entries on a page.').default(DEFAULT_PAGE_SIZE),
  cursor: about(
    cursor,
    'Start of the page: the cursor in the `Link` header of the previous page. It is valid only for the same list, order and filters.',
  ).optional(),
};

// Responses.

export const uuid = (description: string) => z.string().meta({ format: 'uuid' }).describe(description);
export const timestamp = (description: string) => z.string().meta({ format: 'date-time' }).describe(description);
// A counter can exceed 32 bits.
export const count = (description: string) =>
  z.int().min(0).meta({ format: 'int64', maximum: undefined }).describe(description);
export const measure = (description: string) => z.number().min(0).describe(description);
export const string = (description: string) => z.string().describe(description);
export const boolean = (description: string) => z.boolean().describe(description);
/** Also allows null; the description says what null means. */
export const nullable = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullable().describe(schema.description ?? '');

/** IDs of the resources in all examples. */
export const EXAMPLE_IDS = {
  project: '6f1c9a52-5f0e-4c7b-9f43-2a9d1c3b7e10',
  token: '0b8e7c1d-3a52-4f6b-8d1e-9c4f2a6b5d70',
  session: '3d2a1f60-7b4c-4e8a-9c5d-1e0f6a7b8c90',
  record: 'c5e4d3b2-1a09-4f8e-8d7c-6b5a49382716',
  otherToken: '9d4c3b2a-6e5f-4a1b-8c7d-0f1e2d3c4b5a',
  batch: '7e6d5c4b-2f1a-4b3c-9d8e-5a6b7c8d9e0f',
  undo: '1f2e3d4c-8a9b-4c5d-8e6f-7a8b9c0d1e2f',
} as const;
