/** The agents that are tested, in the versions that `environments.ts` lists. */
import { type Commands, ENVIRONMENTS } from './environments.js';
import { JOB } from './model.js';

export type Api = 'openai' | 'anthropic' | 'google';

export interface Agent {
  title: string;
  environment: Commands;
  /** The program and its arguments for the job. */
  command: readonly [string, ...string[]];
  api: Api;
  /** The page in docs/clients, and the name of its blocks: how a person points the agent at an address. */
  page: string;
  blocks: string;
  /** Keeps it from telling others about its use, and from looking for newer releases. */
  quiet?: Readonly<Record<string, string>>;
  /** Options of `llmp run`, which starts it without anything from the page; null: another entry tests that. */
  runOptions: readonly string[] | null;
}

const { codex, claude, gemini, opencode, qwen, cn, cline, aider, python } = ENVIRONMENTS;

const CODEX = {
  environment: codex,
  command: [
    ...(['codex', 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'] as const),
    // A model that Codex does not know gets the tools that all others have.
    ...['-m', 'gpt-test', '-c', 'analytics.enabled=false', '-c', 'check_for_update_on_startup=false', JOB],
  ],
  api: 'openai',
  page: 'codex.md',
} as const;

const OPENCODE = {
  environment: opencode,
  page: 'opencode.md',
  blocks: 'opencode',
  quiet: {
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
  },
  runOptions: [],
} as const;

const LLM_TOOL = `def shell(command: str) -> str:
    """Runs a command."""
    import os
    return str(os.system(command))
`;

export const AGENTS: readonly Agent[] = [
  { title: 'Codex by WebSocket', ...CODEX, blocks: 'codex', runOptions: [] },
  { title: 'Codex by HTTP', ...CODEX, blocks: 'codex-http', runOptions: null },
  {
    title: 'Claude Code',
    environment: claude,
    command: ['claude', '-p', JOB, '--allowedTools', 'Bash'],
    api: 'anthropic',
    page: 'claude-code.md',
    blocks: 'claude',
    quiet: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
    runOptions: [],
  },
  {
    title: 'Gemini CLI',
    environment: gemini,
    command: ['gemini', '-p', JOB, '--yolo', '-m', 'gemini-2.5-flash'],
    api: 'google',
    page: 'gemini-cli.md',
    blocks: 'gemini',
    quiet: { GEMINI_CLI_TRUST_WORKSPACE: 'true', GEMINI_CLI_NO_RELAUNCH: 'true' },
    runOptions: [],
  },
  {
    title: 'opencode with OpenAI',
    ...OPENCODE,
    command: ['opencode', 'run', '-m', 'openai/gpt-5', JOB],
    api: 'openai',
  },
  {
    title: 'opencode with Anthropic',
    ...OPENCODE,
    command: ['opencode', 'run', '-m', 'anthropic/claude-sonnet-4-5', JOB],
    api: 'anthropic',
  },
  {
    title: 'opencode with Google',
    ...OPENCODE,
    command: ['opencode', 'run', '-m', 'google/gemini-2.5-flash', JOB],
    api: 'google',
  },
  {
    title: 'Qwen Code',
    environment: qwen,
    command: ['qwen', '-p', JOB, '--yolo', '--auth-type', 'openai', '-m', 'gpt-test'],
    api: 'openai',
    page: 'qwen-code.md',
    blocks: 'qwen',
    quiet: { QWEN_CODE_SUPPRESS_YOLO_WARNING: '1' },
    runOptions: [],
  },
  {
    title: 'Continue',
    environment: cn,
    command: ['cn', '--auto', '-p', JOB],
    api: 'openai',
    page: 'continue.md',
    blocks: 'continue',
    quiet: { CONTINUE_TELEMETRY_ENABLED: '0', CONTINUE_METRICS_ENABLED: '0' },
    runOptions: ['--model', 'gpt-5'],
  },
  {
    title: 'Cline',
    environment: cline,
    command: ['cline', JOB],
    api: 'openai',
    page: 'cline.md',
    blocks: 'cline',
    // Otherwise a background process stays.
    quiet: { CLINE_SESSION_BACKEND_MODE: 'local' },
    runOptions: [],
  },
  {
    title: 'aider',
    environment: aider,
    command: [
      ...(['aider', '--model', 'openai/gpt-test', '--edit-format', 'diff', '--message', JOB, '--yes-always'] as const),
      ...['--no-git', '--analytics-disable', '--no-check-update', '--no-show-release-notes'],
      ...['--no-show-model-warnings', '--no-detect-urls'],
    ],
    api: 'openai',
    page: 'aider.md',
    blocks: 'aider',
    quiet: { LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    runOptions: [],
  },
  {
    title: 'llm',
    environment: python,
    command: ['llm', '-m', 'gpt-4o-mini', JOB, '--functions', LLM_TOOL],
    api: 'openai',
    page: 'llm.md',
    blocks: 'llm',
    runOptions: [],
  },
  {
    title: 'openai-agents',
    environment: python,
    command: ['run-openai-agents', JOB],
    api: 'openai',
    page: 'openai-agents.md',
    blocks: 'openai-agents',
    quiet: { OPENAI_AGENTS_DISABLE_TRACING: '1' },
    runOptions: [],
  },
  {
    title: 'pydantic-ai with OpenAI',
    environment: python,
    command: ['run-pydantic-ai', 'openai-chat:gpt-test', JOB],
    api: 'openai',
    page: 'pydantic-ai.md',
    blocks: 'pydantic-ai',
    runOptions: [],
  },
  {
    title: 'pydantic-ai with Anthropic',
    environment: python,
    command: ['run-pydantic-ai', 'anthropic:claude-sonnet-4-5', JOB],
    api: 'anthropic',
    page: 'pydantic-ai.md',
    blocks: 'pydantic-ai-anthropic',
    runOptions: [],
  },
];
