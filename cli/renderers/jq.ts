/**
 * `--jq`: evaluates a jq program on the value that `-o json` prints. It is jq itself, compiled to WebAssembly: the program can read
 * neither files nor the environment.
 */
import { type Jq, loadJq } from 'jq-wasm';
import { escapedQuotes, visibleLines } from '../../console/escape.js';
import { EXIT, Failure, usage } from '../../console/failure.js';
import type { Renderer } from './renderer.js';

// `--` ends the options: a program that starts with - must not be taken for one.
const FLAGS = ['-c', '--'];

/** @throws {Failure} with exit code 2 if jq cannot compile the program. */
export async function jqRenderer(program: string): Promise<Renderer> {
  const jq = await loadJq();
  // Without input nothing is evaluated.
  const { exitCode, stderr } = jq.raw('', program, FLAGS);
  if (exitCode !== 0) throw usage(`--jq: ${problemIn(stderr)}`, { details: linesOf(stderr) });
  const run = (value: unknown) => evaluated(jq, program, value);
  return { all: run, next: run };
}

/** The results, one per line: a string as text, everything else as JSON. */
function evaluated(jq: Jq, program: string, value: unknown): string {
  const { stdout, stderr, exitCode } = rawOf(jq, program, value);
  if (exitCode !== 0) {
    throw new Failure(EXIT.refused, `--jq: ${problemIn(stderr)}`, {
      code: 'jq',
      why: 'The program is valid, but not for this data',
      advice: 'See the data with: -o json',
    });
  }
  const lines = stdout === '' ? [] : stdout.split('\n');
  return lines.map((line) => `${shown(line)}\n`).join('');
}

function rawOf(jq: Jq, program: string, value: unknown): ReturnType<Jq['raw']> {
  try {
    return jq.raw(JSON.stringify(value), program, FLAGS);
  } catch (error) {
    // WebAssembly ends a program that needs more than its memory, or recurses too deeply.
    throw new Failure(EXIT.refused, '--jq: the program needs too much memory', { code: 'jq', cause: error });
  }
}

const shown = (json: string) => (json.startsWith('"') ? visibleLines(JSON.parse(json) as string) : escapedQuotes(json));

/** The first line, without what is of no use: `syntax error, unexpected end of file`. */
function problemIn(stderr: string): string {
  const [line = ''] = stderr.split('\n');
  return line.replace(/^jq: error(?: \([^)]*\))?: /, '').replace(/ at <top-level>.*/, '') || 'failed';
}

/** The place of the error in the program, as two lines. */
const linesOf = (stderr: string): string[] =>
  stderr
    .split('\n')
    .slice(1)
    .filter((line) => line.trim() !== '' && !/^jq: \d+ compile error/.test(line))
    .map((line) => line.replace(/^ {4}/, ''));
