/** Environments in which the agents run: each is a folder `bin` with the agent's command, and the packages that it needs. */
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Environment, environment, installNpm, installPython } from '../support/registry-environment.js';

const DRIVERS = resolve(import.meta.dirname, '../../../test/agents/drivers');

/** The folder with its command. */
export type Commands = Environment<string>;

/** Where an agent is compiled, a package contains the program of one platform. */
const PLATFORM = `${process.platform}-${process.arch}`;

/** @param program the file of the command, in `node_modules`. */
function npm(command: string, name: string, version: string, program: string): Commands {
  return environment({
    what: `agent-${command} (${name} ${version})`,
    ingredients: [name, version, program],
    async make(folder) {
      await installNpm(folder, { [name]: version });
      mkdirSync(join(folder, 'bin'));
      symlinkSync(join(folder, 'node_modules', program), join(folder, 'bin', command));
    },
    program: (folder) => join(folder, 'bin'),
  });
}

/** @param drivers commands that are not in a package, by name: the file of the program in `drivers`. */
function python(name: string, packages: readonly string[], drivers: Readonly<Record<string, string>> = {}): Commands {
  const sources = Object.values(drivers).map((file) => readFileSync(join(DRIVERS, file), 'utf8'));
  return environment({
    what: `agent-${name} (${packages.join(', ')})`,
    ingredients: [...packages, ...sources],
    async make(folder) {
      await installPython(folder, packages);
      for (const [at, command] of Object.keys(drivers).entries()) {
        const file = join(folder, 'bin', command);
        writeFileSync(file, `#!${join(folder, 'bin/python')}\n${sources[at] ?? ''}`);
        chmodSync(file, 0o755);
      }
    },
    program: (folder) => join(folder, 'bin'),
  });
}

export const ENVIRONMENTS = {
  codex: npm('codex', '@openai/codex', '0.171.0', '@openai/codex/bin/codex.js'),
  claude: npm(
    'claude',
    `@anthropic-ai/claude-code-${PLATFORM}`,
    '2.1.332',
    `@anthropic-ai/claude-code-${PLATFORM}/claude`,
  ),
  gemini: npm('gemini', '@google/gemini-cli', '0.61.0', '@google/gemini-cli/bundle/gemini.js'),
  opencode: npm('opencode', `opencode-${PLATFORM}`, '1.18.33', `opencode-${PLATFORM}/bin/opencode`),
  qwen: npm('qwen', '@qwen-code/qwen-code', '0.24.4', '@qwen-code/qwen-code/cli-entry.js'),
  cn: npm('cn', '@continuedev/cli', '1.5.47', '@continuedev/cli/dist/cn.js'),
  cline: npm('cline', `@cline/cli-${PLATFORM}`, '3.0.65', `@cline/cli-${PLATFORM}/bin/cline`),
  aider: python('aider', ['aider-chat==0.86.2']),
  python: python(
    'python',
    ['llm==0.36', 'openai-agents==0.24.0', 'pydantic-ai-slim[anthropic,google,openai]==2.68.0'],
    { 'run-openai-agents': 'run_openai_agents.py', 'run-pydantic-ai': 'run_pydantic_ai.py' },
  ),
};
