/** What an operator hands in besides the command line: files, standard input, answers to questions. */
import { readFile } from 'node:fs/promises';
import { text as textOf } from 'node:stream/consumers';
import { usage } from '../console/failure.js';
import type { Shell } from './shell.js';

export interface Choice<T extends string> {
  value: T;
  /** What is shown for it. */
  name: string;
}

/** As inquirer has them. */
type Question = { message: string } & (
  | { type: 'password'; toggleMask: boolean }
  | { type: 'confirm'; default: boolean }
  | { type: 'input'; default: string; validate: (answer: string) => string | true }
  | { type: 'select'; choices: readonly Choice<string>[]; default: string | undefined }
);

export class Input {
  readonly #shell: Shell;
  /** Prompts need a terminal on both sides: answers come from stdin, and stdout belongs to the data. */
  readonly canAsk: boolean;
  #stdinUser: string | undefined;

  constructor(shell: Shell, mayAsk: boolean) {
    this.#shell = shell;
    this.canAsk = mayAsk && shell.stdin.isTTY === true && shell.stderr.isTTY === true;
  }

  get isPiped(): boolean {
    return this.#shell.stdin.isTTY !== true;
  }

  /**
   * Reads a secret from a file, or from standard input for `-`; one newline at its end is not part of it.
   *
   * @param what names the secret in messages.
   */
  async secretFrom(path: string, what: string): Promise<string> {
    if (path === '-' && !this.isPiped) {
      // Typed into a terminal that is only read from, it would be seen.
      if (!this.canAsk) throw usage(`no way to ask for ${what}`, { advice: 'Pipe it in' });
      return this.hidden(`Type ${what}:`);
    }
    const content = path === '-' ? await this.#standardInput(what) : await contentOf(path, what);
    return content.replace(/\r?\n$/, '');
  }

  /** The lines piped in, without the empty ones. @param what they are, for messages. */
  async linesOfStdin(what: string): Promise<string[]> {
    if (!this.isPiped)
      throw usage(`${what} are read from standard input, which is a terminal`, { advice: 'Pipe them in' });
    const lines = (await this.#standardInput(what)).split('\n').map((line) => line.trim());
    return lines.filter((line) => line !== '');
  }

  /** Asks without showing what is typed. */
  async hidden(message: string): Promise<string> {
    return String(await this.#ask({ type: 'password', message, toggleMask: false }));
  }

  async confirm(message: string, fallback = false): Promise<boolean> {
    return (await this.#ask({ type: 'confirm', message, default: fallback })) === true;
  }

  async #standardInput(what: string): Promise<string> {
    if (this.#stdinUser) {
      throw usage(`standard input cannot be both ${this.#stdinUser} and ${what}`, { advice: 'Use a file for one' });
    }
    this.#stdinUser = what;
    return textOf(this.#shell.stdin);
  }

  /** @param problem says what is wrong with an answer, which is then asked for again. */
  async line(message: string, fallback: string, problem: (answer: string) => string | null): Promise<string> {
    const validate = (answer: string) => problem(answer) ?? true;
    return String(await this.#ask({ type: 'input', message, default: fallback, validate }));
  }

  /** The first choice, unless another one is the fallback. */
  async choice<T extends string>(message: string, choices: readonly Choice<T>[], fallback?: T): Promise<T> {
    const answer = await this.#ask({ type: 'select', message, choices, default: fallback });
    const chosen = choices.find(({ value }) => value === answer);
    if (!chosen) throw new RangeError('a choice that was not offered');
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
    return await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`cannot read ${what} from ${path}`, { why: (error as NodeJS.ErrnoException).code ?? '', cause: error });
  }
}
