/** The SDKs that are tested, in the versions that `environments.ts` lists. */
import type { UpstreamAuth } from '../../daemon/api/vocabulary.js';
import { type Environment, ENVIRONMENTS } from './environments.js';
import type { Kind } from './scenarios.js';

/** An API, as far as its SDKs differ in what their users see. */
export interface Api {
  /** The header in which the provider expects the project's key. */
  auth: UpstreamAuth;
  /** The path of the provider's base URL. */
  path?: string;
  /** Types of errors by status; null if the SDK's errors have those of OpenAI. */
  types: Readonly<Record<number, string>> | null;
  /** What `/manage/usage` reports for one of the calls that the stand-in counts. */
  usage: Usage;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
}

export interface Sdk {
  title: string;
  environment: Environment;
  /** Its name for the driver. */
  sdk: string;
  /** The calls that it supports. */
  kinds: readonly Kind[];
  /** Error class, by status if the SDK has several. */
  classes: Record<number, string> | string;
  /** Decides about retries by the status alone, so a spent cap is sent to it as 403. */
  goesByStatus?: boolean;
  /** Cannot parse the event with the reason that ends a stream, so its user sees a broken stream. */
  missesLastEvent?: boolean;
  /** Ignores X-Should-Retry. By default it does not retry. */
  retriesRegardless?: boolean;
  api: Api;
}

const OPENAI_USAGE: Usage = { prompt_tokens: 3, completion_tokens: 2, cache_read_tokens: 1, cache_write_tokens: 0 };
const OPENAI: Api = { auth: 'bearer', types: null, usage: OPENAI_USAGE };
const AZURE: Api = { ...OPENAI, auth: 'api-key' };
const GROQ: Api = { ...OPENAI, path: '/openai' };
const ANTHROPIC: Api = {
  auth: 'x-api-key',
  types: {
    401: 'authentication_error',
    403: 'permission_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    502: 'api_error',
    503: 'overloaded_error',
  },
  // Anthropic's own `input_tokens` are without those of the cache.
  usage: { prompt_tokens: 3 + 5 + 7, completion_tokens: 2, cache_read_tokens: 7, cache_write_tokens: 5 },
};
const GOOGLE: Api = {
  auth: 'x-goog-api-key',
  types: {
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    413: 'INVALID_ARGUMENT',
    429: 'RESOURCE_EXHAUSTED',
    502: 'UNAVAILABLE',
    503: 'UNAVAILABLE',
  },
  usage: OPENAI_USAGE,
};

const ALL: readonly Kind[] = ['chat', 'stream', 'models', 'embeddings', 'tool', 'upload'];
const WITHOUT_FILES: readonly Kind[] = ['chat', 'stream', 'models', 'embeddings', 'tool'];
const WITHOUT_LISTS: readonly Kind[] = ['chat', 'stream', 'embeddings', 'tool'];
const OF_ANTHROPIC: readonly Kind[] = ['chat', 'stream', 'models', 'tool', 'count'];
const OF_GOOGLE: readonly Kind[] = [...WITHOUT_FILES, 'count'];
const COMMON = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  429: 'RateLimitError',
  500: 'InternalServerError',
  502: 'InternalServerError',
  503: 'InternalServerError',
};
const JAVASCRIPT = { ...COMMON, 413: 'APIError' };
const PYTHON = { ...COMMON, 413: 'APIStatusError' };
const OLD_ANTHROPIC_PYTHON = { ...COMMON, 413: 'RequestTooLargeError' };
const NEW_ANTHROPIC = { ...COMMON, 413: 'ContentTooLargeError', 503: 'ServiceUnavailableError' };
const GOOGLE_PYTHON = {
  401: 'ClientError',
  403: 'ClientError',
  413: 'ClientError',
  429: 'ClientError',
  502: 'ServerError',
  503: 'ServerError',
};
const { npm, pythonNew, pythonOld, langchain, go } = ENVIRONMENTS;

const javascript = (title: string, sdk: string, kinds: readonly Kind[], rest: Partial<Sdk> = {}): Sdk => ({
  ...{ title: `${title} (JavaScript)`, environment: npm, sdk, kinds, classes: JAVASCRIPT, api: OPENAI },
  ...rest,
});
const python = (title: string, environment: Environment, sdk: string, kinds: readonly Kind[], rest: Partial<Sdk>) => ({
  ...{ title: `${title} (Python)`, environment, sdk, kinds, classes: PYTHON, api: OPENAI },
  ...rest,
});
const VERCEL = { classes: 'APICallError', goesByStatus: true };

export const SDKS: readonly Sdk[] = [
  javascript('openai 4', 'openai4', ALL),
  javascript('openai 5', 'openai5', ALL),
  javascript('openai 6', 'openai6', ALL),
  javascript('AzureOpenAI of openai 6', 'azure', WITHOUT_FILES, { api: AZURE }),
  javascript('groq-sdk', 'groq', WITHOUT_FILES, { api: GROQ }),
  javascript('@mistralai/mistralai', 'mistral', WITHOUT_FILES, {
    classes: 'SDKError',
    retriesRegardless: true,
    missesLastEvent: true,
  }),
  javascript('@anthropic-ai/sdk 0.39', 'anthropic0', OF_ANTHROPIC, { api: ANTHROPIC }),
  javascript('@anthropic-ai/sdk 1', 'anthropic1', OF_ANTHROPIC, { api: ANTHROPIC, classes: NEW_ANTHROPIC }),
  javascript('@google/genai', 'google', OF_GOOGLE, { api: GOOGLE, classes: 'ApiError', retriesRegardless: true }),
  javascript('ai with @ai-sdk/openai', 'ai-openai', WITHOUT_LISTS, VERCEL),
  javascript('ai with @ai-sdk/anthropic', 'ai-anthropic', ['chat', 'stream', 'tool'], { ...VERCEL, api: ANTHROPIC }),
  javascript('ai with @ai-sdk/google', 'ai-google', WITHOUT_LISTS, { ...VERCEL, api: GOOGLE, missesLastEvent: true }),
  python('openai 3', pythonNew, 'openai', ALL, {}),
  python('openai 1', pythonOld, 'openai', ALL, {}),
  python('AzureOpenAI of openai 3', pythonNew, 'azure', WITHOUT_FILES, { api: AZURE }),
  python('langchain-openai', langchain, 'langchain', WITHOUT_LISTS, {}),
  python('anthropic 2', pythonNew, 'anthropic', OF_ANTHROPIC, { api: ANTHROPIC, classes: NEW_ANTHROPIC }),
  python('anthropic 2, with auth_token', pythonNew, 'anthropic-auth-token', OF_ANTHROPIC, {
    ...{ api: ANTHROPIC, classes: NEW_ANTHROPIC },
  }),
  python('anthropic 0.125', pythonOld, 'anthropic', OF_ANTHROPIC, { api: ANTHROPIC, classes: OLD_ANTHROPIC_PYTHON }),
  python('google-genai', pythonNew, 'google', OF_GOOGLE, {
    ...{ api: GOOGLE, classes: GOOGLE_PYTHON, retriesRegardless: true },
  }),
  {
    ...{ title: 'openai-go 3 (Go)', environment: go, sdk: 'openai-go', kinds: WITHOUT_FILES },
    ...{ classes: '*apierror.Error', api: OPENAI },
  },
  {
    ...{ title: 'go-openai (Go)', environment: go, sdk: 'go-openai', kinds: WITHOUT_FILES },
    ...{ classes: '*openai.APIError', api: OPENAI },
  },
];
