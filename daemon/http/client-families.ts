/**
 * Families of clients: how a request shows which program or SDK sent it, the format of errors that it reads, and the status with which it
 * gives up. Many programs retry whatever has status 429 or 5xx, for minutes and mostly in silence, even when no retry can succeed.
 *
 * Everything else about clients is derived from this table: the response to a refusal (problems.ts, wording.ts) and a table in
 * docs/clients/README.md.
 */
import type { Reloadable } from '../../config/settings.js';
import type { ErrorFormat } from './error-format.js';

/**
 * The status of a final refusal, which no retry cures, for a client.
 *
 * @param status what the specification says.
 */
export type FinalStatus = (status: number) => number;

/** How to word errors for a client. */
export interface Client {
  format: ErrorFormat;
  finalStatus: FinalStatus;
}

export interface Family {
  /** In Markdown. */
  name: string;
  /** Names of headers in lower case. `*` at the end stands for the rest of a name. */
  headers?: readonly string[];
  /** Beginnings of words in `User-Agent`, in any case. `*` in front: within a word too. */
  userAgents?: readonly string[];
  /** Programs that speak to several APIs have the format of the API, which its headers show, or else this one. */
  format: ErrorFormat;
  finalStatus: FinalStatus;
  /** For the documentation, in Markdown: what its users see, and why. */
  note: string;
}

const asSpecified: FinalStatus = (status) => status;
const never5xx =
  (instead: number): FinalStatus =>
  (status) =>
    status >= 500 ? instead : status;
const neverRetried: FinalStatus = (status) => (status === 429 || status >= 500 ? 403 : status);
const always400: FinalStatus = () => 400;
/** What litellm knows as a mistake in the request. Of the rest, its programs retry one or the other. */
const MISTAKES: readonly number[] = [400, 404, 413];
const mistakeOr401: FinalStatus = (status) => (MISTAKES.includes(status) ? status : 401);

/** Programs, by their own names. The first that fits counts. */
export const PROGRAMS: readonly Family[] = [
  {
    name: 'Codex',
    userAgents: ['codex_', 'codex-', 'codex desktop'],
    format: 'openai',
    finalStatus: always400,
    note: 'Retries every other status, also 401 and 403, and hides the message of a 429. A refused WebSocket costs a second request.',
  },
  {
    name: 'opencode, Cline and others with `ai` (Vercel)',
    userAgents: ['ai-sdk/'],
    format: 'openai',
    finalStatus: neverRetried,
    note: 'They go by the status, and opencode by the type of the error too. It asks twice: for a title and for the response.',
  },
  {
    name: 'aider and others with litellm',
    userAgents: ['litellm/'],
    format: 'openai',
    finalStatus: mistakeOr401,
    note: 'Only with models of Anthropic and Google: for those of OpenAI, litellm uses their SDK. aider retries a 403 of Anthropic, and mini-swe-agent a 400.',
  },
  {
    name: 'Gemini CLI',
    userAgents: ['geminicli'],
    format: 'google',
    finalStatus: neverRetried,
    note: 'Retries 429 and 5xx.',
  },
  {
    name: 'Qwen Code',
    userAgents: ['qwencode/'],
    format: 'openai',
    finalStatus: neverRetried,
    note: 'Retries 429 and 5xx.',
  },
  {
    name: 'promptfoo',
    headers: ['x-promptfoo-version'],
    format: 'openai',
    finalStatus: neverRetried,
    note: 'Retries 429 and 5xx.',
  },
];

/** SDKs, by the headers of their APIs, which many programs send through them. The first that fits counts. */
export const SDKS: readonly Family[] = [
  {
    name: "Anthropic's SDKs, Claude Code",
    headers: ['anthropic-version'],
    format: 'anthropic',
    finalStatus: never5xx(403),
    note: 'Obey `X-Should-Retry`. Claude Code calls a 5xx temporary. promptfoo, which uses this SDK, retries a 429 on its own.',
  },
  {
    name: "Google's SDKs",
    headers: ['x-goog-api-key'],
    format: 'google',
    finalStatus: never5xx(403),
    note: 'Do not retry by default. With `retry_options` they retry 429.',
  },
  {
    name: "OpenAI's SDKs and those like them",
    headers: ['x-stainless-*', 'openai-*'],
    userAgents: ['*openai', 'mistral-client', 'go-http-client/'],
    format: 'openai',
    // As the provider itself does. aider gives up after this, but not after a 403.
    finalStatus: never5xx(401),
    note: "Obey `X-Should-Retry`, except Mistral's and go-openai. Some programs with these SDKs retry a 429 on their own for one to five minutes: aider and mini-swe-agent (a 403 too), Continue, gptme and smolagents. Their requests are those of the SDK, so they cannot be told apart.",
  },
];

export const UNKNOWN: Family = {
  name: 'Any other client',
  format: 'plain',
  finalStatus: asSpecified,
  note: '',
};

// A longer User-Agent is read up to here, however long it is.
const MAX_USER_AGENT = 512;

interface Matcher {
  family: Family;
  exact: readonly string[];
  prefixes: readonly string[];
  userAgent: RegExp | null;
}

const matchersOf = (families: readonly Family[]): readonly Matcher[] =>
  families.map((family) => {
    const { headers = [], userAgents } = family;
    return {
      family,
      exact: headers.filter((name) => !name.endsWith('*')),
      prefixes: headers.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1)),
      userAgent: userAgents ? new RegExp(userAgents.map(patternOf).join('|'), 'i') : null,
    };
  });

const patternOf = (beginning: string) =>
  beginning.startsWith('*') ? escaped(beginning.slice(1)) : `(?<![a-z0-9])${escaped(beginning)}`;

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');

const OF_PROGRAMS = matchersOf(PROGRAMS);
const OF_SDKS = matchersOf(SDKS);

/**
 * How to word errors for the client that sent a request. Call it only when there is an error: the path of other requests needs none of this.
 *
 * @param shape the setting `ERROR_SHAPE`. A fixed one is for all clients, with the statuses that the specification says.
 * @param rawHeaders the request's, names and values in turn.
 */
export function clientOf(shape: Reloadable['errorShape'], rawHeaders: readonly string[]): Client {
  if (shape !== 'auto') return { format: shape, finalStatus: asSpecified };
  const names: string[] = [];
  let userAgent = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (name === 'user-agent' && userAgent === '') userAgent = (rawHeaders[i + 1] ?? '').slice(0, MAX_USER_AGENT);
    names.push(name);
  }
  const sdk = firstOf(OF_SDKS, names, userAgent);
  const program = firstOf(OF_PROGRAMS, names, userAgent);
  const { finalStatus } = program ?? sdk ?? UNKNOWN;
  return { format: (sdk ?? program ?? UNKNOWN).format, finalStatus };
}

const firstOf = (matchers: readonly Matcher[], names: readonly string[], userAgent: string): Family | undefined =>
  matchers.find(
    (matcher) =>
      matcher.userAgent?.test(userAgent) === true ||
      names.some((name) => matcher.exact.includes(name) || matcher.prefixes.some((prefix) => name.startsWith(prefix))),
  )?.family;
