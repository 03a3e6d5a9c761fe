/**
 * Environments in which the SDKs run: an npm folder, Python virtual environments, a Go program. Each is created once with the standard
 * package manager and reused from a cache outside of the repository. The folder name contains a hash of the contents, so that other
 * versions or a changed driver get a new environment.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

const DRIVERS = resolve(import.meta.dirname, '../../../test/sdks/drivers');
const CACHE = process.env.LLMP_SDKS_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'llmp-sdks');
// Go compiles OpenAI's package for minutes on a small machine.
const INSTALL_TIMEOUT_MS = 540_000;

/** The registry is unreachable or a tool is missing, so the SDK was not tested. */
export class NotChecked extends Error {
  override name = 'NotChecked';
}

export interface Environment {
  /** Its contents, for people. */
  what: string;
  /** Creates the environment unless it exists. @throws {NotChecked} */
  prepare(): Promise<Program>;
}

/** A driver that is ready to run. */
export interface Program {
  command: string;
  args: string[];
}

interface Recipe {
  what: string;
  /** Everything that affects the result. */
  ingredients: string[];
  make: (folder: string) => Promise<unknown>;
  program: (folder: string) => Program;
}

function environment({ what, ingredients, make, program }: Recipe): Environment {
  const key = createHash('sha256').update(JSON.stringify(ingredients)).digest('hex').slice(0, 16);
  const folder = join(CACHE, `${what.split(' ')[0] ?? ''}-${key}`);
  const done = join(folder, '.done');
  let making: Promise<Program> | null = null;
  const prepared = async () => {
    if (!existsSync(done)) {
      rmSync(folder, { recursive: true, force: true }); // Left over from an interrupted run.
      mkdirSync(folder, { recursive: true });
      await make(folder);
      writeFileSync(done, '');
    }
    return program(folder);
  };
  return { what, prepare: () => (making ??= prepared()) };
}

const textOf = (file: string) => readFileSync(join(DRIVERS, file), 'utf8');

function npm(): Environment {
  const dependencies = {
    openai4: 'npm:openai@4.104.0',
    openai5: 'npm:openai@5.23.2',
    openai6: 'npm:openai@6.49.0',
    ai: '6.0.325',
    '@ai-sdk/openai': '3.0.141',
    '@ai-sdk/anthropic': '3.0.140',
    '@ai-sdk/google': '3.0.141',
    anthropic0: 'npm:@anthropic-ai/sdk@0.39.0',
    anthropic1: 'npm:@anthropic-ai/sdk@1.14.0',
    '@google/genai': '2.32.0',
    'groq-sdk': '1.6.0',
    '@mistralai/mistralai': '2.7.0',
  };
  const modules = readdirSync(DRIVERS).filter((file) => file.endsWith('.mjs'));
  const manifest = JSON.stringify({ private: true, type: 'module', dependencies });
  return environment({
    what: 'npm (openai 4, 5 and 6, ai, the SDKs of Anthropic, Google, Groq and Mistral)',
    ingredients: [manifest, ...modules.map(textOf)],
    async make(folder) {
      writeFileSync(join(folder, 'package.json'), manifest);
      for (const file of modules) copyFileSync(join(DRIVERS, file), join(folder, file)); // There they find their packages.
      await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder], folder);
    },
    program: (folder) => ({ command: process.execPath, args: [join(folder, 'driver.mjs')] }),
  });
}

function python(name: string, ...packages: string[]): Environment {
  return environment({
    what: `${name} (${packages.join(', ')})`,
    ingredients: packages,
    async make(folder) {
      await run('python3', ['-m', 'venv', folder], folder);
      await run(join(folder, 'bin/python'), ['-m', 'pip', 'install', '--quiet', ...packages], folder);
    },
    program: (folder) => ({ command: join(folder, 'bin/python'), args: [join(DRIVERS, 'driver.py')] }),
  });
}

function go(): Environment {
  const files = ['go.mod', 'go.sum', 'main.go'];
  return environment({
    what: 'go (openai-go, go-openai)',
    ingredients: files.map((file) => textOf(join('go', file))),
    async make(folder) {
      for (const file of files) copyFileSync(join(DRIVERS, 'go', file), join(folder, file));
      await run('go', ['build', '-o', 'driver', '.'], folder);
    },
    program: (folder) => ({ command: join(folder, 'driver'), args: [] }),
  });
}

export const ENVIRONMENTS = {
  npm: npm(),
  pythonNew: python('python-new', 'openai==3.57.0', 'anthropic==2.14.0', 'google-genai==3.6.1'),
  pythonOld: python('python-old', 'openai==1.109.1', 'anthropic==0.125.0'),
  langchain: python('python-langchain', 'langchain-openai==1.0.3'),
  go: go(),
};

const NETWORK_ERROR =
  /ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRE|ENETUNREACH|network|timed out|timeout|NewConnectionError|ProxyError|Max retries|dial tcp|no such host|connection refused|5\d\d (?:Server|Bad|Service|Gateway)/i;

/** @throws {NotChecked} if a tool is missing or the registry is unreachable. */
async function run(command: string, args: string[], folder: string): Promise<void> {
  await new Promise<void>((done, fail) => {
    const options = { cwd: folder, timeout: INSTALL_TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 };
    execFile(command, args, options, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`;
      if (!error) done();
      else if (error.code === 'ENOENT') fail(new NotChecked(`${command} is not installed`));
      else if (error.killed) fail(new NotChecked(`${command} took too long`));
      else if (NETWORK_ERROR.test(output)) fail(new NotChecked(`the registry of ${command} does not respond`));
      else fail(new Error(`${command} ${args.join(' ')}: ${output.slice(-2_000)}`));
    });
  });
}
