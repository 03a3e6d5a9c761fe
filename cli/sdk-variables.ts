/**
 * The environment variables of providers' SDKs. `llmp run` sets them for a command, and `llmp self` reads a token and the address of the
 * daemon from them.
 */
import type { ProviderName } from '../daemon/api/providers.js';

interface SdkVariables {
  /** Variables for the key. The first is set; the others would take precedence over it, or be sent beside it. */
  keys: readonly [string, ...string[]];
  /** Variables for the base URL, in the same way. */
  baseUrls: readonly [string, ...string[]];
  /** The end of the path of its base URL. */
  path: '' | '/v1';
}

/** By the name that `--for` takes. */
export const SDKS = {
  openai: { keys: ['OPENAI_API_KEY'], baseUrls: ['OPENAI_BASE_URL', 'OPENAI_API_BASE'], path: '/v1' },
  anthropic: { keys: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'], baseUrls: ['ANTHROPIC_BASE_URL'], path: '' },
  gemini: { keys: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'], baseUrls: ['GOOGLE_GEMINI_BASE_URL'], path: '' },
  azure: { keys: ['AZURE_OPENAI_API_KEY', 'AZURE_OPENAI_AD_TOKEN'], baseUrls: ['AZURE_OPENAI_ENDPOINT'], path: '' },
} as const satisfies Record<string, SdkVariables>;

export type SdkName = keyof typeof SDKS;
export const SDK_NAMES = Object.keys(SDKS) as [SdkName, ...SdkName[]];

/** Variables for the keys of other providers and tools, and switches to another service. With one of them, a command could bypass the token. */
const OTHER_KEYS = [
  'OPENAI_ADMIN_KEY',
  'CLAUDE_CODE_OAUTH_TOKEN',
  'GOOGLE_GENERATIVE_AI_API_KEY',
  'AZURE_API_KEY',
  'GROQ_API_KEY',
  'MISTRAL_API_KEY',
  'OPENROUTER_API_KEY',
  'DEEPSEEK_API_KEY',
  'TOGETHER_API_KEY',
  'TOGETHER_AI_API_KEY',
  'OLLAMA_API_KEY',
  'XAI_API_KEY',
  'PERPLEXITY_API_KEY',
  'COHERE_API_KEY',
  'CO_API_KEY',
  'FIREWORKS_API_KEY',
  'CEREBRAS_API_KEY',
  'DEEPINFRA_API_KEY',
  'HUGGINGFACE_API_KEY',
  'REPLICATE_API_TOKEN',
  'NVIDIA_API_KEY',
  'VOYAGE_API_KEY',
  'ELEVENLABS_API_KEY',
  'HF_TOKEN',
  'HUGGING_FACE_HUB_TOKEN',
  'AI_GATEWAY_API_KEY',
  'AWS_BEARER_TOKEN_BEDROCK',
  'ANTHROPIC_CUSTOM_HEADERS',
  'OPENAI_API_TYPE',
  'GOOGLE_GENAI_USE_VERTEXAI',
  'CLAUDE_CODE_USE_BEDROCK',
  'CLAUDE_CODE_USE_VERTEX',
];

/** Variables that a command must not inherit: keys of all providers. */
export const PROVIDER_KEYS: readonly string[] = [...Object.values(SDKS).flatMap(({ keys }) => keys), ...OTHER_KEYS];

/** The SDK for a project's provider. All providers but these have OpenAI's API. @param provider null if it is unknown. */
export const sdkOf = (provider: ProviderName | null): SdkName =>
  provider !== null && provider in SDKS ? (provider as SdkName) : 'openai';

/**
 * The environment of a command that uses the token in place of all providers' keys.
 *
 * @param baseUrlOf the base URL for an SDK.
 */
export function environmentFor(
  sdks: readonly SdkName[],
  token: string,
  baseUrlOf: (sdk: SdkName) => string,
  inherited: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  const env = { ...inherited };
  for (const name of PROVIDER_KEYS) Reflect.deleteProperty(env, name);
  for (const sdk of sdks) {
    const { keys, baseUrls } = SDKS[sdk];
    for (const name of baseUrls) Reflect.deleteProperty(env, name);
    env[keys[0]] = token;
    env[baseUrls[0]] = baseUrlOf(sdk);
  }
  return env;
}

const TOKEN = /^sk-wt-[0-9A-Za-z]+$/;

/** A token in the environment, and the address of its daemon. */
export interface TokenInEnvironment {
  token: string;
  /** The variable that has it. */
  variable: string;
  /** The address without the SDK's part of the path; null if the environment does not name one. */
  server: string | null;
  /** The variable that names the address. */
  serverVariable: string;
}

/**
 * The first withering token in the variables of these SDKs.
 *
 * @returns null if there is none. Other keys are not returned: they must not be sent to a daemon.
 */
export function tokenIn(env: NodeJS.ProcessEnv, sdks: readonly SdkName[]): TokenInEnvironment | null {
  for (const sdk of sdks) {
    const { keys, baseUrls, path } = SDKS[sdk];
    const variable = keys.find((name) => TOKEN.test(env[name] ?? ''));
    if (variable === undefined) continue;
    const serverVariable = baseUrls.find((name) => env[name]) ?? baseUrls[0];
    const url = env[serverVariable]?.replace(/\/+$/, '') ?? '';
    const server = url === '' ? null : url.endsWith(path) ? url.slice(0, url.length - path.length) : url;
    return { token: env[variable] ?? '', variable, server, serverVariable };
  }
  return null;
}
