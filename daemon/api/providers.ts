/**
 * The providers that llmp knows: presets for the upstream of a project. The front ends offer them; the daemon stores only the base URL and
 * the header for the key.
 */
import type { MissingUsage, UpstreamAuth } from './vocabulary.js';

export interface Provider {
  /** Name for people. */
  title: string;
  /** Null if each customer has its own. */
  baseUrl: string | null;
  auth: UpstreamAuth;
}

/** By the name that `--provider` takes. */
export const PROVIDERS = {
  openai: { title: 'OpenAI', baseUrl: 'https://api.openai.com', auth: 'bearer' },
  anthropic: { title: 'Anthropic', baseUrl: 'https://api.anthropic.com', auth: 'x-api-key' },
  azure: { title: 'Azure OpenAI', baseUrl: null, auth: 'api-key' },
  gemini: { title: 'Google Gemini', baseUrl: 'https://generativelanguage.googleapis.com', auth: 'x-goog-api-key' },
  groq: { title: 'Groq', baseUrl: 'https://api.groq.com/openai', auth: 'bearer' },
  mistral: { title: 'Mistral', baseUrl: 'https://api.mistral.ai', auth: 'bearer' },
  openrouter: { title: 'OpenRouter', baseUrl: 'https://openrouter.ai/api', auth: 'bearer' },
  deepseek: { title: 'DeepSeek', baseUrl: 'https://api.deepseek.com', auth: 'bearer' },
  together: { title: 'Together AI', baseUrl: 'https://api.together.xyz', auth: 'bearer' },
  ollama: { title: 'Ollama', baseUrl: 'http://localhost:11434', auth: 'bearer' },
} as const satisfies Record<string, Provider>;

export type ProviderName = keyof typeof PROVIDERS;
export const PROVIDER_NAMES = Object.keys(PROVIDERS) as [ProviderName, ...ProviderName[]];

/** Names the daemon's `UPSTREAM_BASE_URL` where a preset can be named. */
export const DEFAULT_PROVIDER = 'default';
export type ProviderChoice = ProviderName | typeof DEFAULT_PROVIDER;
export const PROVIDER_CHOICES: readonly [ProviderChoice, ...ProviderChoice[]] = [...PROVIDER_NAMES, DEFAULT_PROVIDER];

/** In forms and filters: a provider of its own that is none of the presets. */
export const OTHER_PROVIDER = 'other';
export type FormProvider = ProviderChoice | typeof OTHER_PROVIDER;

/** The choices of forms, with their titles. */
export const FORM_PROVIDERS: readonly (readonly [FormProvider, string])[] = [
  [DEFAULT_PROVIDER, 'Default of the daemon'],
  ...PROVIDER_NAMES.map((name) => [name, PROVIDERS[name].title] as const),
  [OTHER_PROVIDER, 'Other'],
];

/** Choices of a form that require a base URL. */
export const WITH_BASE_URL: readonly FormProvider[] = ['azure', OTHER_PROVIDER];

/** The header for the key, as forms name it. */
export const authTitle = (auth: UpstreamAuth): string => (auth === 'bearer' ? 'Authorization: Bearer' : auth);

/** What happens with the usage that a chat stream does not report, as forms name it. */
export const missingUsageTitle = (value: MissingUsage): string => `${value}: ${MEANINGS[value]}`;

const MEANINGS: Readonly<Record<MissingUsage, string>> = {
  off: 'it is not counted',
  bound: 'budgets are charged the most it can be',
  refuse: 'refuse streams that do not ask for it',
  inject: 'ask for it in place of the client',
};

/** A project's upstream, as in the API. */
export interface ProjectUpstream {
  /** Null: the daemon's `UPSTREAM_BASE_URL`. */
  upstream_base_url: string | null;
  upstream_auth: UpstreamAuth;
}

/** @returns the preset of this upstream; null if there is none. */
export function providerOf({ upstream_base_url: baseUrl, upstream_auth: auth }: ProjectUpstream): ProviderName | null {
  if (baseUrl === null) return null;
  const found = PROVIDER_NAMES.find((name) => PROVIDERS[name].baseUrl === baseUrl && PROVIDERS[name].auth === auth);
  if (found !== undefined) return found;
  return auth === PROVIDERS.azure.auth ? 'azure' : null;
}

/** The APIs that a project can forward to, by the name of the SDK that speaks it. */
export const DIALECTS = ['openai', 'anthropic', 'gemini', 'azure'] as const;
export type Dialect = (typeof DIALECTS)[number];

const DIALECT_OF: Readonly<Record<UpstreamAuth, Dialect>> = {
  bearer: 'openai',
  'x-api-key': 'anthropic',
  'x-goog-api-key': 'gemini',
  'api-key': 'azure',
};

/** The API of this upstream. The header for the key tells it, whatever the host is; all providers with `bearer` have OpenAI's API. */
export const dialectOf = ({ upstream_auth: auth }: Pick<ProjectUpstream, 'upstream_auth'>): Dialect => DIALECT_OF[auth];

/** The choice of a form that describes this upstream. */
export const formProviderOf = (upstream: ProjectUpstream): FormProvider =>
  upstream.upstream_base_url === null ? DEFAULT_PROVIDER : (providerOf(upstream) ?? OTHER_PROVIDER);

/** A short name for people: that of the preset, or the host of the base URL. @returns `default` for the daemon's `UPSTREAM_BASE_URL`. */
export function providerTitle(upstream: ProjectUpstream): string {
  const { upstream_base_url: baseUrl } = upstream;
  if (baseUrl === null) return DEFAULT_PROVIDER;
  const name = providerOf(upstream);
  if (name !== null) return PROVIDERS[name].title;
  return URL.canParse(baseUrl) ? new URL(baseUrl).host : baseUrl;
}

/**
 * The upstream that a front end's form describes. An omitted `baseUrl` or `auth` is the preset's.
 *
 * @throws {UpstreamIncomplete} if the preset requires a base URL.
 */
export function upstreamFrom(given: {
  provider?: FormProvider | undefined;
  baseUrl?: string | undefined;
  auth?: UpstreamAuth | undefined;
}): Partial<ProjectUpstream> {
  const { provider } = given;
  const preset = provider && presetOf(provider);
  const baseUrl = given.baseUrl ?? preset?.baseUrl;
  const auth = given.auth ?? preset?.auth;
  if (preset && baseUrl === null && provider !== DEFAULT_PROVIDER) throw new UpstreamIncomplete(preset);
  return {
    ...(baseUrl !== undefined && { upstream_base_url: baseUrl }),
    ...(auth !== undefined && { upstream_auth: auth }),
  };
}

function presetOf(provider: FormProvider): Provider {
  if (provider === DEFAULT_PROVIDER) return { title: DEFAULT_PROVIDER, baseUrl: null, auth: 'bearer' };
  if (provider === OTHER_PROVIDER) return { title: 'Another provider', baseUrl: null, auth: 'bearer' };
  return PROVIDERS[provider];
}

/** The provider has no base URL that is the same for all customers, and none was given. */
export class UpstreamIncomplete extends Error {
  constructor({ title }: Provider) {
    super(`${title} requires a base URL`);
  }
}
