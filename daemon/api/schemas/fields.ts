/**
 * What the shapes of the management API are made of.
 *
 * A field that a request may carry has two texts: its `description` completes the sentence "… must be …" of a refusal, and
 * `about` says what the field is. The OpenAPI description joins the two. A field of an answer has a `description` only.
 */
import * as z from 'zod';
import { timestampMs } from '../timestamp.js';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, SPAN_PATTERN, STATUS_LIST } from '../vocabulary.js';

/** Adds what an input field is, as one or more sentences. */
export const about = <Schema extends z.ZodType>(schema: Schema, sentences: string): Schema =>
  schema.meta({ about: sentences });

type Described = {
  minLength?: number;
  maxLength?: number;
  /** Every regular expression engine must be able to read it: no `\p{…}`, no `\u…`, no lookaround, no `\d` and `\w`. */
  pattern?: string;
};

/**
 * A string that is judged by `accepts`. What JSON Schema says of it may be less, because a pattern that every language can
 * read cannot say everything; the rest must be in the words.
 */
const text = (accepts: (text: string) => boolean, described: Described, words: string) =>
  z.string().refine(accepts).meta(described).describe(words);
const matching = (pattern: RegExp) => (written: string) => pattern.test(written);

export const wholeNumber = (from: number, to: number) =>
  z.int().min(from).max(to).describe(`a whole number from ${from} to ${to}`);

export const flag = z.boolean().describe('true or false');

// Counted in characters, not in UTF-16 units. Control characters would let a name forge log lines or drive an
// operator's terminal; half a surrogate pair has no UTF-8.
const NAME = /^(?=.*\S)[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,100}$/u;
/** Control characters, in a form that every engine reads. */
const CONTROL = '\\x00-\\x1f\\x7f-\\x9f';
export const name = text(
  matching(NAME),
  { minLength: 1, maxLength: 100, pattern: `^[^${CONTROL}]*[^\\s${CONTROL}][^${CONTROL}]*$` },
  '1 to 100 characters, not only spaces, without control characters',
);

/** Ids are UUIDs in lower case. They are read in any letter case; one that is no UUID belongs to nothing. */
export const id = z
  .string()
  .min(1)
  .max(64)
  .toLowerCase()
  .meta({ format: 'uuid', minLength: undefined, maxLength: undefined })
  .describe('an id');

// It becomes part of a header line, so nothing but visible ASCII.
export const upstreamKey = text(
  matching(/^[\x21-\x7e]{1,512}$/),
  { minLength: 1, maxLength: 512, pattern: '^[\\x21-\\x7e]*$' },
  'the upstream key: 1 to 512 visible ASCII characters',
);

// As long as a target of /v1 may be. The daemon looks at it as it looks at those (daemon/http/shape.ts).
export const cachedUrl = text(
  (url) => url.length <= 8192 && /^\/v1(?:[/?]|$)/.test(url),
  { maxLength: 8192, pattern: '^/v1([/?]|$)' },
  'a path under /v1 in its plain form, with its query if it has one, at most 8 KiB',
);

// Queries: each value is a string, whatever it stands for, and is described as what it stands for.

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
const AHEAD = new RegExp(`^-?${SPAN_PATTERN}$`);
const AGO = new RegExp(`^${SPAN_PATTERN}$`);
const isTimestamp = (written: string) => timestampMs(written) !== null;

/** Or a span by the daemon's clock, whenever it is asked: so the query stays the same, and its cursors hold, while time goes on. */
export const timeAhead = text(
  (written) => AHEAD.test(written) || isTimestamp(written),
  { pattern: `^(-?${SPAN_PATTERN}|${TIMESTAMP})$` },
  `${A_TIMESTAMP}, or a time from now such as 2h, 7d or -30m`,
);
export const timeAgo = text(
  (written) => AGO.test(written) || isTimestamp(written),
  { pattern: `^(${SPAN_PATTERN}|${TIMESTAMP})$` },
  `${A_TIMESTAMP}, or a time ago such as 30m, 2h or 7d`,
);

/** One of these, or with `!` in front none of them. */
export const selection = (one: string, most: number, what: string) =>
  z
    .string()
    .regex(new RegExp(`^!?${one}(?:,${one}){0,${most - 1}}$`))
    .describe(`${what}, with commas between if several, and with ! in front for all others`);

/** Ids, or with `!` in front all others. What is no id is accepted, and finds nothing. */
export const idSelection = selection('[^,!]{1,64}', 20, 'an id')
  .toLowerCase()
  .meta({ pattern: '^!?[0-9A-Fa-f-]{36}(,[0-9A-Fa-f-]{36}){0,19}$' });

// SQLite ends a pattern at a NUL, and an empty pattern matches every name.
export const partOfText = text(
  matching(/^\P{Cc}{1,100}$/u),
  { minLength: 1, maxLength: 100, pattern: `^[^${CONTROL}]*$` },
  '1 to 100 characters, without control characters',
);

export const textWithWords = text(
  matching(/^(?=.*[\p{L}\p{N}])\P{Cc}{1,100}$/u),
  { minLength: 1, maxLength: 100, pattern: `^[^${CONTROL}]*$` },
  '1 to 100 characters, a letter or a digit among them, without control characters',
);

const WORD = `!?(?:"[^"${CONTROL}]{1,100}"|[^\\s"!${CONTROL}][^\\s"${CONTROL}]{0,99})`;
export const words = z
  .string()
  .regex(new RegExp(`^${WORD}(?: ${WORD}){0,9}$`, 'u'))
  .describe(
    '1 to 10 words with a space between, in double quotes where they hold spaces, with ! in front if not wanted',
  );

/** Such as `429` or `4xx,5xx`. */
export const statuses = z
  .string()
  .regex(STATUS_LIST)
  .describe('statuses or classes of them, separated by commas, such as 429 or 4xx,5xx');

export const cursor = z.string().min(1).max(1000).describe('the cursor of a Link header');

export const paging = {
  limit: about(queryNumber(1, MAX_PAGE_SIZE), 'How many entries a page has at most.').default(DEFAULT_PAGE_SIZE),
  cursor: about(
    cursor,
    'Where the page begins. The `Link` header of the page before has it; it belongs to its list, order and filters.',
  ).optional(),
};

// Answers.

export const uuid = (description: string) => z.string().meta({ format: 'uuid' }).describe(description);
export const timestamp = (description: string) => z.string().meta({ format: 'date-time' }).describe(description);
// A counter outgrows 32 bits.
export const count = (description: string) =>
  z.int().min(0).meta({ format: 'int64', maximum: undefined }).describe(description);
export const measure = (description: string) => z.number().min(0).describe(description);
export const string = (description: string) => z.string().describe(description);
export const boolean = (description: string) => z.boolean().describe(description);
/** The same, or null; the description says what null means. */
export const nullable = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullable().describe(schema.description ?? '');

/** The project, token and session of all examples. */
export const EXAMPLE_IDS = {
  project: '6f1c9a52-5f0e-4c7b-9f43-2a9d1c3b7e10',
  token: '0b8e7c1d-3a52-4f6b-8d1e-9c4f2a6b5d70',
  session: '3d2a1f60-7b4c-4e8a-9c5d-1e0f6a7b8c90',
  record: 'c5e4d3b2-1a09-4f8e-8d7c-6b5a49382716',
} as const;
