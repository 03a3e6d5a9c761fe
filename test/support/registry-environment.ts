/**
 * Environments of programs from package registries, such as an npm folder or a Python virtual environment. Each is created once with
 * the standard package manager and reused from a cache outside of the repository. The folder name contains a hash of the contents, so
 * that other versions or a changed driver get a new environment.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const CACHE = process.env.LLMP_SDKS_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'llmp-sdks');
// Go compiles OpenAI's package for minutes on a small machine.
const INSTALL_TIMEOUT_MS = 540_000;

/** The registry is unreachable, has no such package, or a tool is missing, so the program was not tested. */
export class NotChecked extends Error {
  override name = 'NotChecked';
}

export interface Environment<Program> {
  /** Its contents, for people. */
  what: string;
  /** Creates the environment unless it exists. @throws {NotChecked} */
  prepare(): Promise<Program>;
}

interface Recipe<Program> {
  what: string;
  /** Everything that affects the result. */
  ingredients: readonly string[];
  make: (folder: string) => Promise<unknown>;
  /** What of it the tests need. */
  program: (folder: string) => Program;
}

export function environment<Program>({ what, ingredients, make, program }: Recipe<Program>): Environment<Program> {
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

/** Installs packages of npm in a folder, without their install scripts. @param dependencies versions by name. @throws {NotChecked} */
export async function installNpm(folder: string, dependencies: Readonly<Record<string, string>>): Promise<void> {
  writeFileSync(join(folder, 'package.json'), npmManifest(dependencies));
  await install('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder], folder);
}

export const npmManifest = (dependencies: Readonly<Record<string, string>>): string =>
  JSON.stringify({ private: true, type: 'module', dependencies });

/** Makes a virtual environment of Python with packages. @throws {NotChecked} */
export async function installPython(folder: string, packages: readonly string[]): Promise<void> {
  await install('python3', ['-m', 'venv', folder], folder);
  await install(join(folder, 'bin/python'), ['-m', 'pip', 'install', '--quiet', ...packages], folder);
}

const NETWORK_ERROR =
  /ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRE|ENETUNREACH|network|timed out|timeout|NewConnectionError|ProxyError|Max retries|dial tcp|no such host|connection refused|5\d\d (?:Server|Bad|Service|Gateway)/i;

const NO_SUCH_PACKAGE = /\bE404\b|\bETARGET\b|EBADPLATFORM|No matching distribution/;

/** Runs a package manager. @throws {NotChecked} if it is missing, or the registry is unreachable or lacks a package. */
export async function install(command: string, args: string[], folder: string): Promise<void> {
  await new Promise<void>((done, fail) => {
    const options = { cwd: folder, timeout: INSTALL_TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 };
    execFile(command, args, options, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`;
      if (!error) done();
      else if (error.code === 'ENOENT') fail(new NotChecked(`${command} is not installed`));
      else if (error.killed) fail(new NotChecked(`${command} took too long`));
      else if (NETWORK_ERROR.test(output)) fail(new NotChecked(`the registry of ${command} does not respond`));
      else if (NO_SUCH_PACKAGE.test(output)) fail(new NotChecked(`the registry of ${command} does not have it`));
      else fail(new Error(`${command} ${args.join(' ')}: ${output.slice(-2_000)}`));
    });
  });
}
