/** Data goes to stdout in the format asked for; everything else goes to stderr. */
import { csvCell, plain, visible, visibleJson, withoutSecrets } from '../console/escape.js';
import { EXIT, type Failure } from '../console/failure.js';
import type { Format } from './globals.js';
import type { Shell } from './shell.js';
import type { Look, View } from '../console/table.js';

export interface OutputOptions {
  format: Format;
  quiet: boolean;
  verbose: boolean;
  color: boolean;
  /** Never shown in a message, wherever it comes from. */
  secrets: readonly (string | undefined)[];
  /** The first words of all commands. Messages name commands as `llmp WORD …`. */
  commands: readonly string[];
}

const PROGRESS_AFTER_MS = 300;
const DEFAULT_WIDTH = 80;
const DEFAULT_ROWS = 24;
// The titles, how many there are, three lines of what is wrong, and the cursor.
const ROWS_AROUND = 6;

export class Output {
  readonly #shell: Shell;
  readonly #options: OutputOptions;
  #pending = 0;
  #progressTimer: NodeJS.Timeout | undefined;
  #progressShown = false;
  #hasBegun = false;
  /** What `again` wrote last, and told last of what is wrong. */
  #drawn = '';
  #told: string | null = null;
  /** What `listAgain` wrote last of each item. */
  readonly #seen = new Map<string, string>();

  constructor(shell: Shell, options: OutputOptions) {
    this.#shell = shell;
    this.#options = options;
  }

  get format(): Format {
    return this.#options.format;
  }

  get isQuiet(): boolean {
    return this.#options.quiet;
  }

  // ---- data

  /** @param whole what JSON shows when it is not simply the items. */
  async list<T>(items: readonly T[], view: View<T>, whole: unknown = items): Promise<void> {
    if (this.#isForPeople) {
      const { tableOf } = await import('../console/table.js');
      if (items.length > 0) this.#write(await tableOf(items, view.columns, await this.#look()));
    } else this.#write(this.#lines(items, view, whole));
  }

  /** One thing: an object rather than an array in JSON, all of its fields on a terminal. */
  async one<T>(item: T, view: View<T>): Promise<void> {
    if (this.#isForPeople) {
      const { detailOf } = await import('../console/table.js');
      this.#write(detailOf(item, view, await this.#look()));
    } else this.#write(this.#lines([item], view, item));
  }

  /**
   * One of those that come by and by: a line each, JSON for whoever is no person and did not ask for something else. Resolves
   * when whoever reads has taken it.
   */
  async next<T>(item: T, view: View<T>): Promise<void> {
    const isFirst = !this.#hasBegun;
    this.#hasBegun = true;
    if (this.#isForPeople) {
      const { lineOf } = await import('../console/table.js');
      const look = await this.#look();
      if (isFirst) await this.#writeAll(await lineOf(null, view.columns, look));
      await this.#writeAll(await lineOf(item, view.columns, look));
    } else if (this.format === 'csv') {
      const [titles = '', row = ''] = this.#lines([item], view, item).split('\r\n');
      await this.#writeAll(`${isFirst ? `${titles}\r\n` : ''}${row}\r\n`);
    } else {
      await this.#writeAll(this.format === 'id' ? this.#lines([item], view, item) : `${visibleJson(item)}\n`);
    }
  }

  /**
   * One thing as it is now, time and again: at a terminal in the place of what was there before, with what is wrong below it;
   * elsewhere as `next`, and what is wrong is told when it begins.
   */
  async again<T>(item: T, view: View<T>, failure: Failure | null): Promise<void> {
    if (this.#isForPeople && this.#drawsInPlace) {
      const { detailOf } = await import('../console/table.js');
      const look = await this.#look();
      await this.#redraw(detailOf(item, view, look), failure, look);
      return;
    }
    this.#tellOnce(failure);
    if (!this.#isForPeople) {
      await this.next(item, view);
      return;
    }
    await this.one(item, view);
    this.text('');
  }

  /**
   * A list as it is now, time and again: at a terminal as much of it as there is room for, in the place of what was there before;
   * elsewhere each item as `next` when it is new or another than before.
   *
   * @param total how many there are, shown or not.
   */
  async listAgain<T>(items: readonly T[], view: View<T>, total: number, failure: Failure | null): Promise<void> {
    if (this.#isForPeople) {
      const { tableOf } = await import('../console/table.js');
      const look = await this.#look();
      const room = Math.max(1, (this.#shell.stdout.rows ?? DEFAULT_ROWS) - ROWS_AROUND);
      const shown = this.#drawsInPlace ? items.slice(0, room) : items;
      const table = `${await tableOf(shown, view.columns, look)}${shown.length} of ${total}\n`;
      if (this.#drawsInPlace) await this.#redraw(table, failure, look);
      else {
        this.#tellOnce(failure);
        await this.#writeAll(`${table}\n`);
      }
      return;
    }
    this.#tellOnce(failure);
    for (const item of items) {
      const [id, text] = [view.idOf(item), visibleJson(item)];
      if (this.#seen.get(id) === text) continue;
      this.#seen.set(id, text);
      await this.next(item, view);
    }
  }

  async #redraw(text: string, failure: Failure | null, look: Look): Promise<void> {
    const { rowsOf } = await import('../console/table.js');
    const lines = failure ? this.#linesOf(failure) : [];
    const drawn = text + lines.map((line) => `${this.#shown(line)}\n`).join('');
    const up = this.#drawn === '' ? '' : `\x1b[${await rowsOf(this.#drawn, look)}A\x1b[J`;
    this.#drawn = drawn;
    await this.#writeAll(up + drawn);
  }

  #tellOnce(failure: Failure | null): void {
    if (failure && failure.message !== this.#told) this.fail(failure);
    this.#told = failure?.message ?? null;
  }

  /** Whether nothing else is written in between, on a terminal that can go back to where it was. */
  get #drawsInPlace(): boolean {
    return this.#shell.env.TERM !== 'dumb' && !this.#options.verbose;
  }

  /** For lists without an end in sight: writes what it is given, a line each, in this format. */
  linesAs<T>(format: 'table' | 'jsonl' | 'csv', view: View<T>): (items: readonly T[]) => void {
    let isBegun = false;
    return (items) => {
      const text = this.#lines(items, view, items, format);
      this.#write(isBegun && format === 'csv' ? text.slice(text.indexOf('\n') + 1) : text);
      isBegun = true;
    };
  }

  /** What a check found, in any format and however quiet. */
  say(finding: string): void {
    if (!this.#isForPrograms) this.#say(`llmp: ${finding}`);
  }

  /** Data of our own making that is the same in every format. */
  text(data: string): void {
    this.#write(`${data}\n`);
  }

  get #isForPeople(): boolean {
    return this.format === 'table' && this.#shell.stdout.isTTY === true;
  }

  #lines<T>(items: readonly T[], view: View<T>, whole: unknown, format = this.format): string {
    const cells = (item: T, cell: (value: unknown) => string) => view.fields.map((field) => cell(item[field]));
    switch (format) {
      case 'json':
        return `${visibleJson(whole, 2)}\n`;
      case 'id':
        return items.map((item) => `${visible(view.idOf(item))}\n`).join('');
      case 'csv':
        return `${view.fields.join(',')}\r\n${items.map((item) => `${cells(item, csvCell).join(',')}\r\n`).join('')}`;
      case 'jsonl':
        return items.map((item) => `${visibleJson(item)}\n`).join('');
      default:
        return items.map((item) => `${cells(item, plain).join('\t')}\n`).join('');
    }
  }

  // ---- messages

  /** What happened, for a person. A program that asked for JSON has the data. */
  note(message: string): void {
    if (!this.#options.quiet && !this.#isForPrograms) this.#say(message);
  }

  warn(message: string): void {
    if (this.#options.quiet) return;
    if (this.#isForPrograms) this.#say(visibleJson({ warning: message }));
    else this.#say(`llmp: warning: ${message}`);
  }

  trace(message: string): void {
    if (this.#options.verbose) for (const line of message.split('\n')) this.#say(line);
  }

  /** At most three lines: what, why, what to do. A closed pipe and ^C need no words. */
  fail(failure: Failure): void {
    if (failure.exitCode === EXIT.interrupted) return;
    const { why, advice, code, requestId } = failure.explanation;
    if (this.#isForPrograms) {
      const details = { error: failure.message, code, why, advice, request_id: requestId, exit_code: failure.exitCode };
      this.#say(visibleJson(details));
    } else {
      for (const line of this.#linesOf(failure)) this.#say(line);
    }
    if (failure.cause instanceof Error) this.trace(failure.cause.stack ?? failure.cause.message);
  }

  #linesOf({ message, explanation: { why, advice } }: Failure): string[] {
    return [`llmp: ${message}`, ...[why, advice].filter((line) => line).map((line) => `  ${line}`)];
  }

  /** Shows on a terminal that `work` is still under way once that takes noticeably long. */
  async during<T>(what: string, work: Promise<T>): Promise<T> {
    this.#pending += 1;
    if (this.#shell.stderr.isTTY && !this.#options.quiet) {
      this.#progressTimer ??= setTimeout(() => {
        this.#progressShown = true;
        this.#shell.stderr.write(`\r${visible(what)} ...\x1b[K`);
      }, PROGRESS_AFTER_MS);
    }
    try {
      return await work;
    } finally {
      this.#pending -= 1;
      if (this.#pending === 0) this.#endProgress();
    }
  }

  /** Shows on a terminal how many of `all` are done, as soon as that takes noticeably long. @param work calls `tick` for each. */
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
      this.#endProgress();
    });
  }

  #endProgress(): void {
    clearTimeout(this.#progressTimer);
    this.#progressTimer = undefined;
    if (this.#progressShown) this.#shell.stderr.write('\r\x1b[K');
    this.#progressShown = false;
  }

  get #isForPrograms(): boolean {
    return this.format === 'json' || this.format === 'jsonl';
  }

  #say(line: string): void {
    this.#endProgress();
    this.#shell.stderr.write(`${this.#shown(line)}\n`);
  }

  /** Once for each line: a command that is named as the program was called must not be named so again. */
  #shown(line: string): string {
    const { secrets, commands } = this.#options;
    return withoutSecrets(callable(visible(line), this.#shell.program, commands), secrets);
  }

  #write(data: string): void {
    this.#endProgress();
    this.#shell.stdout.write(data);
  }

  async #writeAll(data: string): Promise<void> {
    this.#endProgress();
    const { stdout } = this.#shell;
    if (stdout.write(data)) return;
    await new Promise<void>((resolve) => stdout.once('drain', resolve));
  }

  /** Asked for only when stdout is a terminal. */
  async #look(): Promise<Look> {
    const { default: pc } = await import('picocolors');
    const { stdout, env } = this.#shell;
    return {
      colors: pc.createColors(this.#options.color && !env.NO_COLOR && env.TERM !== 'dumb'),
      ascii: isAscii(env),
      width: stdout.columns || DEFAULT_WIDTH, // Some pseudo-terminals say 0.
      now: this.#shell.now(),
    };
  }
}

/** A message whose commands can be typed as they stand, however the program was called: `llmp token …` becomes `npx llmp token …`. */
function callable(line: string, program: string, commands: readonly string[]): string {
  if (program === 'llmp') return line;
  const named = new RegExp(`(?<![\\w/.-])llmp (?=(?:${commands.join('|')})(?![\\w-]))`, 'g');
  return line.replace(named, () => `${program} `);
}

/** Whether glyphs are to be avoided: asked for, or the locale names another character set. */
export function isAscii({ LLMP_ASCII, LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean {
  if (LLMP_ASCII) return LLMP_ASCII !== '0';
  const locale = LC_ALL || LC_CTYPE || LANG;
  return locale ? !/utf-?8/i.test(locale) : false;
}
