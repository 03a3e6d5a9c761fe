/** Input besides the command line: files, standard input and prompts. */
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { text as textOf } from 'node:stream/consumers';
import { decodedText, whyUnreadable } from '../config/text-file.js';
import { Failure, usage } from '../console/failure.js';
import type { Shell } from './shell.js';

export interface Choice<T extends string> {
  value: T;
  /** The text shown for it. */
  name: string;
}

/** A question in inquirer's format. */
type Question = { message: string } & (
  | { type: 'password'; toggleMask: boolean }
  | { type: 'confirm'; default: boolean }
  | { type: 'input'; default: string; validate: (answer: string) => string | true }
  | { type: 'select'; choices: readonly Choice<string>[]; default: string | undefined }
);

export class Input {
  readonly #shell: Shell;
  readonly #mayAsk: boolean;
  #stdinUser: string | undefined;

  constructor(shell: Shell, mayAsk: boolean) {
    this.#shell = shell;
    this.#mayAsk = mayAsk;
  }

  /** Prompts need a terminal on stdin, for the answers, and on stderr, for the questions: stdout is for data only. */
  get canAsk(): boolean {
    return this.#mayAsk && this.#shell.stdin.isTTY === true && this.#shell.stderr.isTTY === true;
  }

  get isPiped(): boolean {
    return this.#shell.stdin.isTTY !== true;
  }

  /**
   * Reads a secret from a file, or from standard input for `-`, without one newline at its end.
   *
   * @param what the secret's name in messages.
   */
  async secretFrom(path: string, what: string): Promise<string> {
    if (path === '-' && !this.isPiped) {
      // Reading it directly from the terminal would show it while it is typed.
      if (!this.canAsk) throw usage(`cannot prompt for ${what}`, { advice: 'Pipe it to standard input' });
      return this.hidden(`Type ${what}:`);
    }
    const content = path === '-' ? await this.#standardInput(what) : await contentOf(path, what);
    return content.replace(/\r?\n$/, '');
  }

  /**
   * The text of a file, or of standard input for `-`.
   *
   * @param what its name in messages. @throws {Failure} if it is not UTF-8, or longer than `maxBytes`.
   */
  async textFrom(path: string, what: string, maxBytes: number): Promise<string> {
    if (path === '-' && !this.isPiped)
      throw usage(`${what} must be piped: standard input is a terminal`, { advice: 'Pipe it, or name a file' });
    if (path === '-') this.#claimStdin(what);
    try {
      return decodedText(await bytesOf(path === '-' ? this.#shell.stdin : createReadStream(path), what, maxBytes));
    } catch (error) {
      if (error instanceof Failure) throw error;
      throw usage(`cannot read ${what} from ${path}`, { why: whyUnreadable(error), cause: error });
    }
  }

  /** The non-empty lines of standard input. @param what their name in messages. */
  async linesOfStdin(what: string): Promise<string[]> {
    if (!this.isPiped)
      throw usage(`${what} must be piped: standard input is a terminal`, { advice: 'Pipe them, one per line' });
    const lines = (await this.#standardInput(what)).split('\n').map((line) => line.trim());
    return lines.filter((line) => line !== '');
  }

  /** Prompts without echoing the answer. */
  async hidden(message: string): Promise<string> {
    return String(await this.#ask({ type: 'password', message, toggleMask: false }));
  }

  async confirm(message: string, fallback = false): Promise<boolean> {
    return (await this.#ask({ type: 'confirm', message, default: fallback })) === true;
  }

  async #standardInput(what: string): Promise<string> {
    this.#claimStdin(what);
    return textOf(this.#shell.stdin);
  }

  #claimStdin(what: string): void {
    if (this.#stdinUser) {
      throw usage(`standard input cannot provide both ${this.#stdinUser} and ${what}`, {
        advice: 'Use a file for one of them',
      });
    }
    this.#stdinUser = what;
  }

  /** @param problem returns what is wrong with an answer, or null. A wrong answer is asked for again. */
  async line(message: string, fallback: string, problem: (answer: string) => string | null): Promise<string> {
    const validate = (answer: string) => problem(answer) ?? true;
    return String(await this.#ask({ type: 'input', message, default: fallback, validate }));
  }

  /** Lets the user choose. The cursor starts at `fallback`, or at the first choice. */
  async choice<T extends string>(message: string, choices: readonly Choice<T>[], fallback?: T): Promise<T> {
    const answer = await this.#ask({ type: 'select', message, choices, default: fallback });
    const chosen = choices.find(({ value }) => value === answer);
    if (!chosen) throw new RangeError('the answer is not one of the choices');
    return chosen.value;
  }

  async #ask(question: Question): Promise<unknown> {
    const { default: inquirer } = await import('inquirer');
    const { stdin, stderr } = this.#shell;
    const prompt = inquirer.createPromptModule({ input: stdin as NodeJS.ReadStream, output: stderr });
    const answers: { answer: unknown } = await prompt([{ name: 'answer', ...question }]);
    return answers.answer;
  }
}

async function contentOf(path: string, what: string): Promise<string> {
  try {
    return decodedText(await readFile(path));
  } catch (error) {
    throw usage(`cannot read ${what} from ${path}`, { why: whyUnreadable(error), cause: error });
  }
}

async function bytesOf(stream: AsyncIterable<unknown>, what: string, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of stream as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > maxBytes) throw usage(`${what} has more than ${maxBytes / 1024 ** 2} MiB`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
