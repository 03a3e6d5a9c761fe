/**
 * The providers that llmp knows: presets for the upstream of a project. The front ends offer them; the daemon stores only the base URL and
 * the header for the key.
 */
import type { UpstreamAuth } from './vocabulary.js';

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
  provider?: ProviderChoice | undefined;
  baseUrl?: string | undefined;
  auth?: UpstreamAuth | undefined;
}): Partial<ProjectUpstream> {
  const { provider } = given;
  const preset: Provider | undefined =
    provider === DEFAULT_PROVIDER
      ? { title: DEFAULT_PROVIDER, baseUrl: null, auth: 'bearer' }
      : provider && PROVIDERS[provider];
  const baseUrl = given.baseUrl ?? preset?.baseUrl;
  const auth = given.auth ?? preset?.auth;
  if (preset && baseUrl === null && provider !== DEFAULT_PROVIDER) throw new UpstreamIncomplete(preset);
  return {
    ...(baseUrl !== undefined && { upstream_base_url: baseUrl }),
    ...(auth !== undefined && { upstream_auth: auth }),
  };
}

/** Each customer of this provider has a base URL of its own, and none was given. */
export class UpstreamIncomplete extends Error {
  constructor({ title }: Provider) {
    super(`${title} requires the base URL of your resource`);
  }
}
