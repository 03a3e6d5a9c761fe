/** Runs a command line and returns its exit code. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { EXIT, Failure, failureOf } from '../console/failure.js';
import { packageRoot } from '../config/package-root.js';
import type { Invocation } from './command.js';
import { COMMAND_WORDS } from './commands.js';
import { destinationOf, serverWithoutContext } from './connection/destination.js';
import { type Format, formatIn, formatOf, isTableRequested, optionsGiven } from './globals.js';
import { Input } from './input.js';
import { Output, type Renderer } from './output.js';
import { parse } from './parser.js';
import type { Shell } from './shell.js';

/**
 * Parses `argv`, runs the command, and reports a failure on stderr.
 *
 * @param argv the arguments without the interpreter and the script.
 * @returns the exit code.
 */
export async function run(argv: readonly string[], shell: Shell): Promise<number> {
  const { result, globals, helpOf } = await parse(argv, shell);
  if (result.kind === 'shown') return EXIT.done;
  if (isBundle() && result.kind === 'chosen' && result.command.runsUnbundled) return runUnbundled(argv, shell);

  const { env } = shell;
  // An invalid contexts file is an error only for commands that use a context.
  const destination = await destinationOf(globals, env).catch((error: unknown) => failureOf(error, ''));
  const server = destination instanceof Failure ? serverWithoutContext(globals, env) : destination.server;
  const outputAs = (format: Format, renderer?: Renderer) =>
    new Output(shell, {
      format,
      renderer,
      quiet: globals.quiet ?? false,
      verbose: globals.verbose ?? false,
      color: globals.color ?? true,
      isTableRequested: isTableRequested(globals, env),
      pager: globals.pager ?? true,
      secrets: [globals.managementToken, env.MANAGEMENT_TOKEN],
      commands: COMMAND_WORDS,
    });
  let output = outputAs('table');
  try {
    const requested = result.kind === 'failed' ? { output: formatIn(argv) } : {};
    const format = formatOf({ ...requested, ...globals }, env);
    output = outputAs(format);
    if (result.kind === 'failed') throw result.failure;
    if (format === 'yaml' || format === 'jq' || format === 'template') {
      const { rendererFor } = await import('./renderers/select.js');
      const renderer = await rendererFor(globals, format, shell);
      output = outputAs(format, renderer);
      renderer?.check?.(result.command.prints?.(result) ?? []);
    }
    const { command } = result;
    const ignored = optionsGiven(command.ignores ?? [], globals);
    if (ignored.length > 0) {
      const words = command.path.filter((word) => word !== 'manage').join(' ');
      output.warn(`${ignored.join(', ')} ${ignored.length === 1 ? 'has' : 'have'} no effect on llmp ${words}`);
    }
    const input = new Input(shell, globals.input ?? true);
    const invocation: Invocation = {
      args: result.args,
      options: result.options,
      globals,
      shell,
      input,
      output,
      server,
      destination() {
        if (destination instanceof Failure) throw destination;
        return destination;
      },
      async connect() {
        const { connect } = await import('./connection/connection.js');
        return connect(invocation);
      },
      helpOf,
    };
    return await command.run(invocation);
  } catch (error) {
    const failure = failureOf(error, server);
    output.fail(failure);
    return failure.exitCode;
  }
}

/**
 * Whether this is in the bundle: one file with the command line, which starts in a third of the time of separate modules. It does not
 * contain the daemon and the terminal UI. A command that loads them is run by the separate modules in dist/ from its beginning, so that
 * no class exists twice in one run.
 */
const isBundle = () => typeof IS_BUNDLE !== 'undefined';

/** The bundler defines it. */
declare const IS_BUNDLE: true | undefined;

/** Runs a command line with the separate modules. @returns the exit code. */
async function runUnbundled(argv: readonly string[], shell: Shell): Promise<number> {
  const program = pathToFileURL(join(packageRoot(), 'dist/cli/program.js')).href;
  const { run } = (await import(program)) as { run: (argv: readonly string[], shell: Shell) => Promise<number> };
  return run(argv, shell);
}
