/** The global options: every command accepts them, anywhere on the command line. */
import { duration, oneOf } from '../config/kinds.js';
import { flag, text, value, type Values } from './option.js';
import { quoted, usage } from '../console/failure.js';

const FORMATS = ['table', 'json', 'jsonl', 'yaml', 'csv', 'id'] as const;
type NamedFormat = (typeof FORMATS)[number];
/** `jq` and `template` are requested by their own options. */
export type Format = NamedFormat | 'jq' | 'template';

const format = oneOf(...FORMATS);

export const GLOBAL_OPTIONS = {
  output: value('-o, --output <FORMAT>', format, `${FORMATS.join(', ')} (LLMP_OUTPUT)`),
  json: flag('--json', 'same as -o json'),
  jq: text('--jq <PROGRAM>', "print the results of a jq program on the JSON output, for example '.[].id'"),
  template: text(
    '--template <TEXT>',
    "print a text for each item, with its fields, for example '{{.id}}\\t{{.name}}'; \\t is a tab, \\n a new line",
  ),
  quiet: flag('-q, --quiet', 'suppress messages on standard error, except errors'),
  yes: flag('-y, --yes', 'do not ask for confirmation'),
  context: text('-c, --context <NAME>', 'context to use: llmp context list (LLMP_CONTEXT)', 'context'),
  server: text('--server <URL>', 'address of the daemon: http://HOST:PORT, https://… or unix:PATH (LLMP_SERVER)'),
  managementToken: text('--management-token <TOKEN>', 'the management token; other users can see it with `ps`'),
  managementTokenFile: text(
    '--management-token-file <FILE>',
    'a file that contains the management token; - is standard input',
  ),
  verbose: flag('-v, --verbose', 'print requests to the daemon on standard error'),
  color: flag('--no-color', 'do not use colors (NO_COLOR)'),
  pager: flag('--no-pager', 'do not show long tables with a pager (LLMP_PAGER)'),
  timeout: value('--timeout <DURATION>', duration(), 'time limit for a response, for example 10s (default: 30s)'),
  input: flag('--no-input', 'never prompt; fail instead'),
  reason: text('--reason <TEXT>', 'reason for the change, for the audit log (up to 200 characters)'),
};

export type Globals = Values<typeof GLOBAL_OPTIONS>;

/** The options that concern requests to the daemon, and those that concern the output, for commands that have neither. */
export const OF_REQUESTS = [
  'server',
  'context',
  'managementToken',
  'managementTokenFile',
  'timeout',
  'reason',
] as const satisfies readonly (keyof Globals)[];
export const OF_OUTPUT = ['output', 'json', 'jq', 'template'] as const satisfies readonly (keyof Globals)[];

/** Those of the options that were given, as they are written: `--server`. */
export const optionsGiven = (among: readonly (keyof Globals)[], globals: Globals): string[] =>
  among
    .filter((key) => globals[key] !== undefined)
    .map((key) => /--[\w-]+/.exec(GLOBAL_OPTIONS[key].flags)?.[0] ?? key);

/** The default of --timeout. */
export const DEFAULT_TIMEOUT_MS = 30_000;

/** @throws {Failure} if the value of LLMP_OUTPUT is not a format. */
export function formatOf(globals: Globals, env: NodeJS.ProcessEnv): Format {
  if (globals.jq !== undefined) return 'jq';
  if (globals.template !== undefined) return 'template';
  if (globals.json) return 'json';
  if (globals.output) return globals.output;
  const wanted = env.LLMP_OUTPUT;
  if (!wanted) return 'table';
  const known = format.parse(wanted);
  if (!known) throw usage(`LLMP_OUTPUT must be ${format.accepts}, not ${quoted(wanted)}`);
  return known;
}

/** Whether the format is a table because that was requested, rather than by default. */
export const isTableRequested = ({ output }: Globals, { LLMP_OUTPUT }: NodeJS.ProcessEnv): boolean =>
  (output ?? LLMP_OUTPUT) === 'table';

/** The output format requested by a command line that could not be parsed, so that a script that asked for JSON gets the error as JSON. */
export function formatIn(argv: readonly string[]): NamedFormat | undefined {
  const end = argv.indexOf('--');
  const words = end === -1 ? argv : argv.slice(0, end);
  if (words.includes('--json')) return 'json';
  const [, given] = /(?:^| )(?:-o ?|--output[= ])(\w+)(?: |$)/.exec(words.join(' ')) ?? [];
  return given === undefined ? undefined : format.parse(given);
}
