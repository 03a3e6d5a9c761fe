/**
 * The environment variables of providers' SDKs. `llmp run` sets them for a command, and `llmp self` reads a token and the address of the
 * daemon from them.
 */
import { type Dialect, DIALECTS } from '../daemon/api/providers.js';
import { OTHER_PROVIDER_VARIABLES } from './provider-keys.js';

interface SdkVariables {
  /** Variables for the key. The first is set; the others would take precedence over it, or be sent beside it. */
  keys: readonly [string, ...string[]];
  /** Variables for the base URL, in the same way. */
  baseUrls: readonly [string, ...string[]];
  /** Variables for addresses in programs that read them before those. They have other forms. */
  otherUrls: readonly string[];
  /** The end of the path of its base URL. */
  path: '' | '/v1';
}

/** By the name that `--for` takes. */
export const SDKS = {
  openai: {
    keys: ['OPENAI_API_KEY'],
    baseUrls: ['OPENAI_BASE_URL', 'OPENAI_API_BASE'],
    otherUrls: ['OPENAI_API_BASE_URL', 'OPENAI_API_HOST', 'OPENAI_HOST', 'OPENAI_BASE_PATH'],
    path: '/v1',
  },
  anthropic: {
    keys: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
    baseUrls: ['ANTHROPIC_BASE_URL'],
    otherUrls: ['ANTHROPIC_API_URL', 'ANTHROPIC_API_BASE', 'ANTHROPIC_HOST', 'CLAUDE_API_BASE'],
    path: '',
  },
  gemini: {
    keys: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    baseUrls: ['GOOGLE_GEMINI_BASE_URL'],
    otherUrls: ['GEMINI_API_BASE', 'GOOGLE_API_BASE_URL', 'GOOGLE_API_HOST', 'GOOGLE_HOST'],
    path: '',
  },
  azure: {
    keys: ['AZURE_OPENAI_API_KEY', 'AZURE_OPENAI_AD_TOKEN'],
    baseUrls: ['AZURE_OPENAI_ENDPOINT'],
    otherUrls: [],
    path: '',
  },
} as const satisfies Record<Dialect, SdkVariables>;

export type SdkName = Dialect;
export const SDK_NAMES = DIALECTS;

/** Variables that a command must not inherit: keys of all providers. */
export const PROVIDER_KEYS: readonly string[] = [
  ...Object.values(SDKS).flatMap(({ keys }) => keys),
  ...OTHER_PROVIDER_VARIABLES,
];

/** The variables of an SDK for a token and a base URL. */
export const variablesOf = (sdk: SdkName, token: string, baseUrl: string): Record<string, string> => ({
  [SDKS[sdk].keys[0]]: token,
  [SDKS[sdk].baseUrls[0]]: baseUrl,
});

/**
 * The environment of a command that uses a token in place of all providers' keys.
 *
 * @param sdks those whose other variables for a base URL would take precedence over the given ones.
 */
export function environmentFor(
  sdks: readonly SdkName[],
  variables: Readonly<Record<string, string>>,
  inherited: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  const env = { ...inherited };
  for (const name of PROVIDER_KEYS) Reflect.deleteProperty(env, name);
  for (const sdk of sdks) {
    for (const name of [...SDKS[sdk].baseUrls, ...SDKS[sdk].otherUrls]) Reflect.deleteProperty(env, name);
  }
  return { ...env, ...variables };
}

/** Whether it is a withering token. Other keys must not be sent to a daemon. */
export const isToken = (text: string): boolean => /^sk-wt-[0-9A-Za-z]+$/.test(text);

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
    const variable = keys.find((name) => isToken(env[name] ?? ''));
    if (variable === undefined) continue;
    const serverVariable = baseUrls.find((name) => env[name]) ?? baseUrls[0];
    const url = env[serverVariable]?.replace(/\/+$/, '') ?? '';
    const server = url === '' ? null : url.endsWith(path) ? url.slice(0, url.length - path.length) : url;
    return { token: env[variable] ?? '', variable, server, serverVariable };
  }
  return null;
}
