/** From a command line to an exit code. */
import type { Invocation } from './command.js';
import { COMMAND_WORDS } from './commands.js';
import { destinationOf, serverWithoutContext } from './connection/destination.js';
import { EXIT, Failure, failureOf } from '../console/failure.js';
import { type Format, formatIn, formatOf } from './globals.js';
import { Input } from './input.js';
import { Output } from './output.js';
import { parse } from './parser.js';
import type { Shell } from './shell.js';

/**
 * Parses `argv`, runs the one command it names, and says on stderr what went wrong.
 *
 * @param argv without the interpreter and the script.
 * @returns the exit code.
 */
export async function run(argv: readonly string[], shell: Shell): Promise<number> {
  const { outcome, globals, helpOf } = await parse(argv, shell);
  if (outcome.kind === 'shown') return EXIT.done;

  const { env } = shell;
  // A file of contexts that is amiss is the matter of those commands alone that ask for it.
  const destination = await destinationOf(globals, env).catch((error: unknown) => failureOf(error, ''));
  const server = destination instanceof Failure ? serverWithoutContext(globals, env) : destination.server;
  const outputAs = (format: Format) =>
    new Output(shell, {
      format,
      quiet: globals.quiet ?? false,
      verbose: globals.verbose ?? false,
      color: globals.color ?? true,
      secrets: [globals.managementToken, env.MANAGEMENT_TOKEN],
      commands: COMMAND_WORDS,
    });
  let output = outputAs('table');
  try {
    const said = outcome.kind === 'failed' ? { output: formatIn(argv) } : {};
    output = outputAs(formatOf({ ...said, ...globals }, env));
    if (outcome.kind === 'failed') throw outcome.failure;
    const input = new Input(shell, globals.input ?? true);
    const invocation: Invocation = {
      args: outcome.args,
      options: outcome.options,
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
    return await outcome.command.run(invocation);
  } catch (error) {
    const failure = failureOf(error, server);
    output.fail(failure);
    return failure.exitCode;
  }
}
