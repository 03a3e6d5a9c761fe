/**
 * Third-party tools in separate environments: with pinned versions, installed once, and reused between runs from the temporary folder.
 * They do not become dependencies of this project.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const HOME = join(tmpdir(), 'llmp-test-clients');

const NPM = {
  '@hey-api/openapi-ts': '0.95.0',
  '@redocly/cli': '2.77.0',
  '@stoplight/spectral-cli': '6.16.3',
  '@types/node': '20.19.43',
  esbuild: '0.28.2',
  'http-cache-tests': '0.4.5',
  'openapi-fetch': '0.17.0',
  'openapi-typescript': '7.13.0',
  typescript: '5.9.3',
};
const PYTHON = {
  'kubernetes-validate': '1.37.0',
  'openapi-generator-cli': '7.26.0',
  'openapi-python-client': '0.29.1',
  'openapi-spec-validator': '0.9.0',
  schemathesis: '4.32.5',
};
const HELM = { 'helm.sh/helm/v3': 'v3.22.0' };
const GO = { 'github.com/oapi-codegen/oapi-codegen/v2': 'v2.8.2', 'github.com/oapi-codegen/runtime': 'v1.8.0' };

/** A tool is not installed and cannot be: it or its package manager is missing, or the registry is unreachable. */
export class Unavailable extends Error {}

export interface Ran {
  code: number | null;
  /** stdout and stderr. */
  output: string;
}

/** Runs a program until it exits, or kills its process group after `timeoutMs`. */
export function run(
  command: string,
  args: readonly string[],
  { cwd, env = {}, timeoutMs = 180_000 }: { cwd?: string; env?: Record<string, string>; timeoutMs?: number } = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    }
    const timer = setTimeout(() => {
      output += `\n${command} was stopped after ${timeoutMs / 1000} s`;
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    }, timeoutMs);
    const end = (code: number | null) => {
      clearTimeout(timer);
      resolve({ code, output });
    };
    child.once('error', (error) => {
      output += error.message;
      end(null);
    });
    child.once('close', end);
  });
}

/** Runs a program that must succeed. @throws with its output otherwise. */
export async function succeed(...asked: Parameters<typeof run>): Promise<string> {
  const { code, output } = await run(...asked);
  if (code !== 0) throw new Error(`${asked[0]} ${asked[1].join(' ')} ended with ${code}:\n${output}`);
  return output;
}

/** Installs these versions, unless they are installed. @throws {Unavailable} */
async function prepared(name: string, pins: object, install: (folder: string) => Promise<unknown>): Promise<string> {
  const folder = join(HOME, name);
  const stamp = join(folder, 'installed.json');
  const wanted = JSON.stringify(pins);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  try {
    await install(folder);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw new Unavailable(`${name} tools cannot be installed`, { cause: error });
  }
  writeFileSync(stamp, wanted);
  return folder;
}

const INSTALL_MS = 480_000;
const at = (pins: Record<string, string>, between: string) =>
  Object.entries(pins).map(([name, version]) => `${name}${between}${version}`);

/** @returns the folder with `node_modules`. */
export const npmTools = (): Promise<string> =>
  prepared('npm', NPM, async (folder) => {
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--save-exact'];
    await succeed('npm', ['install', ...options, ...at(NPM, '@')], { cwd: folder, timeoutMs: INSTALL_MS });
  });

/** @returns the `bin` folder of the virtual environment. */
export const pythonTools = async (): Promise<string> =>
  join(
    await prepared('python', PYTHON, async (folder) => {
      await succeed('python3', ['-m', 'venv', join(folder, 'venv')]);
      const pip = join(folder, 'venv/bin/pip');
      await succeed(pip, ['install', '--quiet', ...at(PYTHON, '==')], { timeoutMs: INSTALL_MS });
    }),
    'venv/bin',
  );

export interface GoTools {
  generator: string;
  env: Record<string, string>;
  /** Folder with a go.mod and go.sum that contain the requirements of the generated client. */
  module: string;
}

const GO_MODULE = 'module llmp.test/client\n\ngo 1.21\n';

const goEnvironment = (folder: string) => ({
  GOPATH: join(folder, 'path'),
  GOCACHE: join(folder, 'cache'),
  GOBIN: join(folder, 'bin'),
  GOFLAGS: '-modcacherw -mod=mod',
  GOTOOLCHAIN: 'local',
});

/** @returns the path of Helm. Go compiles it for minutes. */
export async function helm(): Promise<string> {
  const [module = ''] = at(HELM, '@');
  const folder = await prepared('helm', HELM, async (folder) => {
    const env = goEnvironment(folder);
    await succeed('go', ['install', module.replace('@', '/cmd/helm@')], { env, timeoutMs: 4 * INSTALL_MS });
    for (const rest of ['path', 'cache']) rmSync(join(folder, rest), { recursive: true });
  });
  return join(folder, 'bin/helm');
}

export async function goTools(): Promise<GoTools> {
  const [generator, runtime] = at(GO, '@') as [string, string];
  const folder = await prepared('go', GO, async (folder) => {
    const env = goEnvironment(folder);
    await succeed('go', ['install', generator.replace('@', '/cmd/oapi-codegen@')], { env, timeoutMs: INSTALL_MS });
    const module = join(folder, 'module');
    mkdirSync(module);
    writeFileSync(join(module, 'go.mod'), GO_MODULE);
    await succeed('go', ['get', runtime, 'github.com/google/uuid@v1.6.0'], { cwd: module, env, timeoutMs: INSTALL_MS });
  });
  return { generator: join(folder, 'bin/oapi-codegen'), env: goEnvironment(folder), module: join(folder, 'module') };
}

/** Waits for tools. If they are unavailable, reports that and skips the test. */
export async function orPending<Tools>(test: Mocha.Context, what: string, tools: Promise<Tools>): Promise<Tools> {
  try {
    return await tools;
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    console.log(`NOT CHECKED: ${what}: ${error.message}`);
    return test.skip();
  }
}

const folders: string[] = [];

/** Creates a folder in the folder of the tools, where programs find their packages. It is removed when the process exits. */
export function workFolder(parent: string): string {
  const folder = mkdtempSync(join(parent, 'work-'));
  if (folders.push(folder) === 1) {
    process.once('exit', () => {
      for (const each of folders) rmSync(each, { recursive: true, force: true });
    });
  }
  return folder;
}
