/**
 * How commands are pointed at a token and an address: the one table of agents and programs, for `llmp run` and `llmp connect`.
 *
 * A profile says what the released program reads, in the order in which it reads it. Where a person's own settings or a stored login would
 * take precedence over a variable, it uses what takes precedence over those: arguments, or files in a folder of their own.
 */
import type { Dialect } from '../daemon/api/providers.js';
import { SDK_NAMES, SDKS, variablesOf } from './sdk-variables.js';

/** What a command is pointed at. */
export interface Target {
  dialect: Dialect;
  /** The base URL in the form that the SDK of this dialect takes, without a slash at the end. */
  url: string;
  /** The token, or what stands for it until it is issued. */
  token: string;
  /** The folder for the files. */
  folder: string;
  model: string;
}

export interface SetUp {
  variables: Readonly<Record<string, string>>;
  /** They are put in front of the command's own. */
  args?: readonly string[];
  /** Contents by name in the folder. */
  files?: Readonly<Record<string, string>>;
}

/** What a permanent set-up reads the token from. */
export type Permanent = Omit<Target, 'folder'> & { tokenFile: string };

export interface PermanentSetUp {
  /** They contain the target's `token` where the shell inserts the token. */
  variables?: Readonly<Record<string, string>>;
  /** Contents by path, as a person writes it. */
  files?: Readonly<Record<string, string>>;
}

export interface Profile {
  /** The name for people. */
  title: string;
  dialects: readonly Dialect[];
  /** Whether its configuration must name a model. */
  needsModel?: boolean;
  /** Whether it takes several dialects at once. */
  takesSeveral?: boolean;
  run: (target: Target) => SetUp;
  /** If it is absent, the set-up is the variables of `run`. */
  connect?: (target: Permanent) => PermanentSetUp;
}

type Common = Pick<Target, 'dialect' | 'url' | 'token'>;

const VERSION: Readonly<Record<Dialect, string>> = { openai: '', anthropic: '/v1', gemini: '/v1beta', azure: '' };

/** The base URL with the version, as `@ai-sdk` and litellm take it. */
const versioned = ({ dialect, url }: Common): string => url + VERSION[dialect];
const originOf = ({ dialect, url }: Common): string => url.replace(new RegExp(`${SDKS[dialect].path}$`), '');
const keyOf = (dialect: Dialect): string => SDKS[dialect].keys[0];
const variables = ({ dialect, url, token }: Common) => variablesOf(dialect, token, url);
const json = (value: unknown): string => JSON.stringify(value, null, 2) + '\n';

const CHAT_DIALECTS = ['openai', 'anthropic', 'gemini'] as const satisfies readonly Dialect[];
/** Google's name in programs that call its API so. */
const named = (dialect: Dialect): string => (dialect === 'gemini' ? 'google' : dialect);

/** Programs that make requests with SDKs: every command that the table does not name, too. */
const program = (title: string, more: (target: Common) => Record<string, string> = () => ({})): Profile => ({
  title,
  dialects: SDK_NAMES,
  takesSeveral: true,
  run: (target) => ({ variables: { ...variables(target), ...more(target) } }),
});

export const ANY_PROGRAM: Profile = program('a program');

const geminiSettings = json({ security: { auth: { selectedType: 'gemini-api-key' } } });

const openCodeProvider = (target: Common, apiKey: string) => ({
  provider: { [named(target.dialect)]: { options: { baseURL: versioned(target), apiKey } } },
});

const clineProviders = (target: Common): string => {
  // The second is for providers that have chat completions only: `cline -P openai-compatible -m MODEL`.
  const ids = target.dialect === 'openai' ? ['openai-native', 'openai-compatible'] : [target.dialect];
  const entry = (provider: string) => ({
    settings: { provider, baseUrl: versioned(target) },
    updatedAt: new Date(0).toISOString(),
    tokenSource: 'manual',
  });
  const providers = Object.fromEntries(ids.map((id) => [id, entry(id)]));
  return json({ version: 1, lastUsedProvider: ids[0], modes: {}, providers });
};

const continueConfig = (target: Omit<Permanent, 'tokenFile'>): string =>
  [
    'name: llmp',
    'version: 1.0.0',
    'schema: v1',
    'models:',
    '  - name: llmp',
    `    provider: ${target.dialect}`,
    `    model: ${JSON.stringify(target.model)}`,
    `    apiBase: ${JSON.stringify(versioned(target))}`,
    `    apiKey: \${{ secrets.${keyOf(target.dialect)} }}`,
    '    roles: [chat]',
    '',
  ].join('\n');

const gooseVariables = (target: Common): Record<string, string> => {
  const provider = { GOOSE_PROVIDER: named(target.dialect) };
  if (target.dialect === 'anthropic') return { ...provider, ANTHROPIC_HOST: target.url };
  if (target.dialect === 'gemini') return { ...provider, GOOGLE_HOST: target.url, GOOGLE_API_KEY: target.token };
  // It reads OPENAI_HOST before OPENAI_BASE_URL, and older releases read no other.
  return { ...provider, OPENAI_HOST: originOf(target), OPENAI_BASE_PATH: 'v1/chat/completions' };
};

const litellmVariables = (target: Common): Record<string, string> => {
  if (target.dialect === 'openai') return { OPENAI_API_BASE: target.url };
  return target.dialect === 'gemini' ? { GEMINI_API_BASE: versioned(target) } : {};
};

const crushConfig = (target: Common): string => {
  const provider = { base_url: target.url, api_key: `$${keyOf(target.dialect)}` };
  return json({ providers: { [target.dialect]: provider } });
};

const aichatConfig = ({ dialect }: Common): string =>
  `clients:\n  - type: ${dialect === 'anthropic' ? 'claude' : dialect}\n`;

const aichatVariables = (target: Common): Record<string, string> =>
  target.dialect === 'anthropic'
    ? { ...variables(target), CLAUDE_API_KEY: target.token, CLAUDE_API_BASE: versioned(target) }
    : { ...variables(target), OPENAI_API_BASE: target.url };

/** By the name of the program's file. */
export const PROFILES: Readonly<Record<string, Profile>> = {
  codex: {
    title: 'Codex',
    dialects: ['openai'],
    // A provider with `env_key` uses no stored login, unlike the built-in one: it reads CODEX_API_KEY in `codex exec` only.
    run: (target) => ({
      variables: variables(target),
      args: [
        '-c',
        'model_provider="llmp"',
        '-c',
        `model_providers.llmp={name="llmp",base_url=${JSON.stringify(target.url)},env_key="OPENAI_API_KEY",wire_api="responses"}`,
      ],
    }),
    // Not with `auth.command`, which would read the file: Codex then asks for the list of models four times at each start.
    connect: ({ url, token }) => ({
      variables: { LLMP_TOKEN: token },
      files: {
        '~/.codex/config.toml': [
          'model_provider = "llmp"',
          '',
          '[model_providers.llmp]',
          'name = "llmp"',
          `base_url = ${JSON.stringify(url)}`,
          'env_key = "LLMP_TOKEN"',
          'wire_api = "responses"',
          '',
        ].join('\n'),
      },
    }),
  },
  claude: {
    title: 'Claude Code',
    dialects: ['anthropic'],
    // `env` and `apiKeyHelper` of a person's settings take precedence over variables, and these settings over those.
    run({ url, token, folder }) {
      const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: token };
      return {
        variables: env,
        args: ['--settings', `${folder}/settings.json`],
        files: { 'settings.json': json({ env: { ...env, ANTHROPIC_API_KEY: '' }, apiKeyHelper: '' }) },
      };
    },
    // Not `apiKeyHelper`: with one, Claude Code retries a refusal ten times, and shows nothing meanwhile.
    connect: ({ url, token }) => ({ variables: { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: token } }),
  },
  gemini: {
    title: 'Gemini CLI',
    dialects: ['gemini'],
    // The login that a person's settings select takes precedence over variables. Only files of root may take precedence over those.
    run: (target) => ({
      variables: { ...variables(target), GEMINI_CLI_HOME: target.folder },
      files: { '.gemini/settings.json': geminiSettings },
    }),
    connect: (target) => ({
      variables: variables(target),
      files: { '~/.gemini/settings.json': geminiSettings },
    }),
  },
  opencode: {
    title: 'opencode',
    dialects: CHAT_DIALECTS,
    run: (target) => ({
      variables: {
        ...variables(target),
        OPENCODE_CONFIG_CONTENT: JSON.stringify({
          enabled_providers: [named(target.dialect)],
          ...openCodeProvider(target, `{env:${keyOf(target.dialect)}}`),
        }),
        // In place of the stored logins.
        OPENCODE_AUTH_CONTENT: '{}',
      },
    }),
    connect: (target) => ({
      files: { '~/.config/opencode/opencode.json': json(openCodeProvider(target, `{file:${target.tokenFile}}`)) },
    }),
  },
  qwen: {
    title: 'Qwen Code',
    dialects: CHAT_DIALECTS,
    run: (target) => ({
      variables: { ...variables(target), QWEN_CODE_SYSTEM_SETTINGS_PATH: `${target.folder}/settings.json` },
      files: {
        'settings.json': json({
          security: { auth: { selectedType: target.dialect } },
          // Otherwise a person's models with an address of their own remain.
          modelProviders: { [target.dialect]: [] },
        }),
      },
    }),
    connect: (target) => ({
      variables: variables(target),
      files: { '~/.qwen/settings.json': json({ security: { auth: { selectedType: target.dialect } } }) },
    }),
  },
  cn: {
    title: 'Continue',
    // Its client for Google has a fixed address.
    dialects: ['openai', 'anthropic'],
    needsModel: true,
    run: (target) => ({
      variables: variables(target),
      args: ['--config', `${target.folder}/config.yaml`],
      files: { 'config.yaml': continueConfig(target) },
    }),
    connect: (target) => ({
      variables: variables(target),
      files: { '~/.continue/config.yaml': continueConfig(target) },
    }),
  },
  cline: {
    title: 'Cline',
    dialects: CHAT_DIALECTS,
    run: (target) => ({
      variables: {
        ...variables(target),
        CLINE_PROVIDER_SETTINGS_PATH: `${target.folder}/providers.json`,
        // Otherwise a process with these variables stays in the background, for later sessions.
        CLINE_SESSION_BACKEND_MODE: 'local',
      },
      files: { 'providers.json': clineProviders(target) },
    }),
    connect: (target) => ({
      variables: variables(target),
      files: { '~/.cline/data/settings/providers.json': clineProviders(target) },
    }),
  },
  aider: {
    title: 'aider',
    dialects: CHAT_DIALECTS,
    run(target) {
      const all = { ...variables(target), ...litellmVariables(target) };
      const settings = Object.entries(all).map(([name, value]) => `${name}=${value}`);
      // A .env file in the working folder takes precedence over variables, and this over that.
      return { variables: { ...all, AIDER_SET_ENV: `[${settings.join(',')}]` } };
    },
    connect: (target) => ({ variables: { ...variables(target), ...litellmVariables(target) } }),
  },
  llm: {
    title: 'llm',
    // Its plug-in for Google has a fixed address.
    dialects: ['openai', 'anthropic'],
    // A key that `llm keys` has stored takes precedence over a variable.
    run: (target) => ({ variables: { ...variables(target), LLM_USER_PATH: target.folder } }),
    connect: (target) => ({ variables: variables(target) }),
  },
  sgpt: {
    title: 'shell-gpt',
    dialects: ['openai'],
    // It writes the value of API_BASE_URL to its configuration. With `default`, it reads OPENAI_BASE_URL.
    run: (target) => ({ variables: { ...variables(target), API_BASE_URL: 'default' } }),
  },
  aichat: {
    title: 'aichat',
    // For Google, 0.30 sends the token in the URL, which the daemon refuses.
    dialects: ['openai', 'anthropic'],
    run: (target) => ({
      variables: {
        ...aichatVariables(target),
        AICHAT_CONFIG_FILE: `${target.folder}/config.yaml`,
        // A file of variables takes precedence over variables.
        AICHAT_ENV_FILE: `${target.folder}/env`,
      },
      files: { 'config.yaml': aichatConfig(target), env: '' },
    }),
    connect: (target) => ({
      variables: aichatVariables(target),
      files: { '~/.config/aichat/config.yaml': aichatConfig(target) },
    }),
  },
  promptfoo: {
    ...program('promptfoo', (target) => (target.dialect === 'gemini' ? { GOOGLE_API_BASE_URL: target.url } : {})),
    dialects: CHAT_DIALECTS,
  },
  goose: {
    title: 'goose',
    dialects: CHAT_DIALECTS,
    run: (target) => ({ variables: { ...variables(target), ...gooseVariables(target) } }),
  },
  crush: {
    title: 'Crush',
    dialects: CHAT_DIALECTS,
    // Its data contain stored keys and the last model, which may be another provider's.
    run: (target) => ({
      variables: {
        ...variables(target),
        CRUSH_GLOBAL_CONFIG: target.folder,
        CRUSH_GLOBAL_DATA: `${target.folder}/data`,
      },
      files: { 'crush.json': crushConfig(target) },
    }),
    connect: (target) => ({
      variables: variables(target),
      files: { '~/.config/crush/crush.json': crushConfig(target) },
    }),
  },
  python: program('Python', (target) => (target.dialect === 'gemini' ? litellmVariables(target) : {})),
  node: program('Node.js', (target) =>
    target.dialect === 'gemini' ? { GOOGLE_GENERATIVE_AI_API_KEY: target.token } : {},
  ),
};

export const PROFILE_NAMES = Object.keys(PROFILES) as [string, ...string[]];

/** @param name the name of a program's file: `python3.12` has the profile of `python`. @returns undefined if it is unknown. */
export function profileOf(name: string): Profile | undefined {
  const known = /^python[\d.]+$/.test(name) ? 'python' : name === 'nodejs' ? 'node' : name;
  return Object.hasOwn(PROFILES, known) ? PROFILES[known] : undefined;
}
