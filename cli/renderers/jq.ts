/**
 * `--jq`: evaluates a jq program on the value that `-o json` prints. It is jq itself, compiled to WebAssembly: the program can read
 * neither files nor the environment. It runs in a thread, which can be stopped: a program may never end.
 */
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { packageRoot } from '../../config/package-root.js';
import { escapedQuotes, visibleLines } from '../../console/escape.js';
import { endedBy, EXIT, Failure, usage } from '../../console/failure.js';
import type { EndingSignal, Shell } from '../shell.js';
import type { JqResult } from './jq-thread.js';
import type { Renderer } from '../output.js';

/** The thread is not part of the bundle. */
const THREAD = join(packageRoot(), 'dist/cli/renderers/jq-thread.js');

// jq itself has 256 MB; the rest is for the data and the results.
const MAX_BYTES = 1024 ** 3;
const CHECK_MS = 100;

/**
 * @param maxBytes how much memory an evaluation may take.
 * @throws {Failure} with exit code 2 if jq cannot compile the program.
 */
export async function jqRenderer(
  program: string,
  shell: Pick<Shell, 'interruptible'>,
  maxBytes = MAX_BYTES,
): Promise<Renderer> {
  const jq = new Jq(program, shell, maxBytes);
  // Without input nothing is evaluated.
  const { exitCode, stderr } = await jq.evaluate('');
  if (exitCode !== 0) throw usage(`--jq: ${problemIn(stderr)}`, { details: linesOf(stderr) });
  const run = (value: unknown) => resultsOf(jq, value);
  return { all: run, next: run };
}

/** The results, one per line: a string as text, everything else as JSON. */
async function resultsOf(jq: Jq, value: unknown): Promise<string> {
  const { stdout, stderr, exitCode } = await jq.evaluate(JSON.stringify(value));
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

/** A program in its thread. It evaluates one input at a time. */
class Jq {
  readonly #shell: Pick<Shell, 'interruptible'>;
  readonly #maxBytes: number;
  readonly #thread: Worker;

  constructor(program: string, shell: Pick<Shell, 'interruptible'>, maxBytes: number) {
    this.#shell = shell;
    this.#maxBytes = maxBytes;
    // Emscripten reports an abort on the standard streams, which are not those of the process.
    this.#thread = new Worker(THREAD, { workerData: program, stdout: true, stderr: true });
    this.#thread.unref(); // The thread does not keep a command alive that has ended.
  }

  /** @throws {Failure} if the program needs too much memory, or a signal ends it. The thread is stopped then. */
  async evaluate(input: string): Promise<JqResult> {
    const thread = this.#thread;
    const before = process.memoryUsage.rss();
    const { promise, resolve, reject } = deferred<JqResult>();
    const stop = (why: Failure) => {
      reject(why);
      void thread.terminate();
    };
    const onMessage = (result: JqResult | null) => {
      if (result) resolve(result);
      else stop(tooLarge());
    };
    thread.on('message', onMessage).on('error', reject);
    const check = setInterval(() => {
      if (process.memoryUsage.rss() - before > this.#maxBytes) stop(tooLarge());
    }, CHECK_MS);
    thread.postMessage(input);
    try {
      return await this.#shell.interruptible(promise, (signal) => {
        stop(interruption(signal));
      });
    } finally {
      clearInterval(check);
      thread.off('message', onMessage).off('error', reject);
    }
  }
}

function deferred<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<T>((onValue, onError) => {
    [resolve, reject] = [onValue, onError];
  });
  return { promise, resolve, reject };
}

const tooLarge = () => new Failure(EXIT.refused, '--jq: the program needs too much memory', { code: 'jq' });
const interruption = (signal: EndingSignal) =>
  new Failure(endedBy(AbortSignal.abort(signal)), 'interrupted', { code: 'interrupted' });

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
