/** Messages of a command: they go to stderr. */
import { visible, visibleJson, withoutSecrets } from '../console/escape.js';
import { EXIT, type Failure } from '../console/failure.js';
import type { Format } from './globals.js';
import type { Shell } from './shell.js';

export interface MessageOptions {
  format: Format;
  quiet: boolean;
  verbose: boolean;
  /** Masked in all messages. */
  secrets: readonly (string | undefined)[];
  /** The first words of all commands, to recognise `llmp WORD …` in messages. */
  commands: readonly string[];
}

const PROGRESS_AFTER_MS = 300;

export class Messages {
  readonly #shell: Shell;
  readonly #options: MessageOptions;
  #pending = 0;
  #progressTimer: NodeJS.Timeout | undefined;
  #progressShown = false;

  constructor(shell: Shell, options: MessageOptions) {
    this.#shell = shell;
    this.#options = options;
  }

  get format(): Format {
    return this.#options.format;
  }

  get isQuiet(): boolean {
    return this.#options.quiet;
  }

  /** A message for people. It is omitted if the format is JSON, because the data says the same. */
  note(message: string): void {
    if (!this.#options.quiet && !this.#isForPrograms) this.#writeMessage(message);
  }

  warn(message: string): void {
    if (this.#options.quiet) return;
    if (this.#isForPrograms) this.#writeMessage(visibleJson({ warning: message }));
    else this.#writeMessage(`llmp: warning: ${message}`);
  }

  trace(message: string): void {
    if (this.#options.verbose) for (const line of message.split('\n')) this.#writeMessage(line);
  }

  /** Writes a failure: what failed, its details, why, and what to do, in one line each. It writes nothing after ^C. */
  fail(failure: Failure): void {
    if (failure.exitCode === EXIT.interrupted) return;
    const { details, why, advice, code, requestId } = failure.explanation;
    if (this.#isForPrograms) {
      const { message: error, exitCode } = failure;
      this.#writeMessage(
        visibleJson({ error, code, details, why, advice, request_id: requestId, exit_code: exitCode }),
      );
    } else {
      for (const line of linesOf(failure)) this.#writeMessage(line);
    }
    if (failure.cause instanceof Error) this.trace(failure.cause.stack ?? failure.cause.message);
  }

  /** Waits for `work`. If it takes longer than 300 ms, the terminal shows `what` until it is done. */
  async during<T>(what: string, work: Promise<T>): Promise<T> {
    this.#pending += 1;
    if (!this.#options.quiet) {
      this.#progressTimer ??= setTimeout(() => {
        if (!this.#shell.stderr.isTTY) return;
        this.#progressShown = true;
        this.#shell.stderr.write(`\r${visible(what)} ...\x1b[K`);
      }, PROGRESS_AFTER_MS);
    }
    try {
      return await work;
    } finally {
      this.#pending -= 1;
      if (this.#pending === 0) this.endProgress();
    }
  }

  /** Waits for `work` and, after 300 ms, shows on a terminal how many of `all` are done. @param work calls `tick` for each. */
  async counting<T>(what: string, all: number, work: (tick: () => void) => Promise<T>): Promise<T> {
    const { stderr } = this.#shell;
    const isShown = all > 1 && stderr.isTTY && !this.#options.quiet;
    const beganMs = performance.now();
    let done = 0;
    return work(() => {
      done += 1;
      if (!isShown || performance.now() - beganMs < PROGRESS_AFTER_MS) return;
      this.#progressShown = true;
      stderr.write(`\r${visible(what)}: ${done} of ${all}\x1b[K`);
    }).finally(() => {
      this.endProgress();
    });
  }

  /** Shows on a terminal how far a long task is, in place of what it showed before. */
  progress(text: string): void {
    const { stderr } = this.#shell;
    if (!stderr.isTTY || this.#options.quiet) return;
    this.#progressShown = true;
    stderr.write(`\r${visible(text)}\x1b[K`);
  }

  /** Removes what `during`, `counting` and `progress` show, before something else is written. */
  protected endProgress(): void {
    clearTimeout(this.#progressTimer);
    this.#progressTimer = undefined;
    if (this.#progressShown) this.#shell.stderr.write('\r\x1b[K');
    this.#progressShown = false;
  }

  get #isForPrograms(): boolean {
    return this.format === 'json' || this.format === 'jsonl';
  }

  #writeMessage(line: string): void {
    this.endProgress();
    this.#shell.stderr.write(`${this.shown(line)}\n`);
  }

  /** The finding of a check, for people. It is written even with --quiet, except if messages are JSON. */
  finding(finding: string): void {
    if (!this.#isForPrograms) this.#writeMessage(`llmp: ${finding}`);
  }

  /** What the user must do before the command goes on. It is written even with --quiet. @param data the same for programs. */
  request(lines: readonly string[], data: object): void {
    if (this.#isForPrograms) this.#writeMessage(visibleJson(data));
    else for (const line of lines) this.#writeMessage(line);
  }

  /** A line as it is written. Must be applied only once to a line: a second pass would replace the program's name in its own replacement. */
  protected shown(line: string): string {
    const { secrets, commands } = this.#options;
    return withoutSecrets(callable(visible(line), this.#shell.program, commands), secrets);
  }
}

/** What failed, its details, why, and what to do, in one line each. */
export function linesOf({ message, explanation: { details = [], why, advice } }: Failure): string[] {
  return [`llmp: ${message}`, ...[...details, why, advice].filter((line) => line).map((line) => `  ${line}`)];
}

/** Replaces `llmp` in commands by the name that the program was called by, so that they can be copied: `npx llmp token …`. */
function callable(line: string, program: string, commands: readonly string[]): string {
  if (program === 'llmp') return line;
  const named = new RegExp(`(?<![\\w/.-])llmp (?=(?:${commands.join('|')})(?![\\w-]))`, 'g');
  return line.replace(named, () => `${program} `);
}
