/**
 * The bundle: one file with the command line, which starts in a third of the time of separate modules. It does not
 * contain the daemon and the terminal UI. A command that loads them is run by the separate modules in dist/ from its beginning, so that
 * no class exists twice in one run.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../config/package-root.js';
import type { Shell } from './shell.js';

/** The bundler defines it. */
declare const IS_BUNDLE: true | undefined;

export const isBundle = typeof IS_BUNDLE !== 'undefined';

/** Runs a command line with the separate modules. @returns the exit code. */
export async function runUnbundled(argv: readonly string[], shell: Shell): Promise<number> {
  const program = pathToFileURL(join(packageRoot(), 'dist/cli/program.js')).href;
  const { run } = (await import(program)) as { run: (argv: readonly string[], shell: Shell) => Promise<number> };
  return run(argv, shell);
}
