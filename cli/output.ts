/** Output of a command: data goes to stdout in the requested format. */
import { csvCell, plain, visible, visibleJson } from '../console/escape.js';
import { EXIT, Failure } from '../console/failure.js';
import { linesOf, type MessageOptions, Messages } from './messages.js';
import type { Shell } from './shell.js';
import type { RenderOptions, View } from '../console/table.js';

export interface OutputOptions extends MessageOptions {
  /** For the formats that need a library. */
  renderer?: Renderer | undefined;
  color: boolean;
  /** Whether a table was requested: it is one even if stdout is not a terminal. */
  isTableRequested?: boolean;
  /** Whether tables that are longer than the screen are shown with a pager. */
  pager: boolean;
}

const DEFAULT_WIDTH = 80;
const DEFAULT_ROWS = 24;
// The titles, the line with the count, up to three lines of an error, and the cursor.
const ROWS_AROUND = 6;

export class Output extends Messages {
  readonly #shell: Shell;
  readonly #options: OutputOptions;
  #hasStreamed = false;
  /** The last output of `refresh` or `refreshList`, and the message of the last failure they reported. */
  #lastFrame = '';
  #lastFailure: string | null = null;
  /** The last JSON that `refreshList` wrote for each item, by ID. */
  readonly #lastShown = new Map<string, string>();

  constructor(shell: Shell, options: OutputOptions) {
    super(shell, options);
    this.#shell = shell;
    this.#options = options;
  }

  /** Whether the data has the structure of the JSON output, rather than that of a table. */
  get isStructured(): boolean {
    return this.format === 'json' || this.#options.renderer !== undefined;
  }

  /** @param whole the JSON value, if it is not simply the array of items. */
  async list<T extends object>(items: readonly T[], view: View<T>, whole: unknown = items): Promise<void> {
    if (this.isForPeople) {
      const { tableOf } = await import('../console/table.js');
      const lines = [...items, ...(view.summary?.(items) ?? [])];
      const render = await this.#renderOptions();
      if (items.length > 0) await this.#writePaged(await tableOf(lines, view.columns, render), render);
    } else this.#write(await this.#rendered(items, view, whole));
  }

  /** Writes a single item: in JSON an object rather than an array, on a terminal all of its fields. */
  async one<T extends object>(item: T, view: View<T>): Promise<void> {
    if (this.isForPeople || (view.isReport && this.format === 'table')) {
      const { detailOf } = await import('../console/table.js');
      const render = await this.#renderOptions();
      await this.#writePaged(detailOf(item, view, render), render);
    } else this.#write(await this.#rendered([item], view, item));
  }

  /**
   * Writes one item of a stream as one line. If the output is not a terminal, the default is JSON. Resolves when the reader
   * has accepted the data.
   */
  async stream<T extends object>(item: T, view: View<T>): Promise<void> {
    const isFirst = !this.#hasStreamed;
    this.#hasStreamed = true;
    if (this.isForPeople) {
      const { lineOf } = await import('../console/table.js');
      const render = await this.#renderOptions();
      if (isFirst) await this.#writeAll(await lineOf(null, view.columns, render));
      await this.#writeAll(await lineOf(item, view.columns, render));
    } else if (this.#options.renderer) {
      await this.#writeAll(await this.#options.renderer.next(item, view.fields));
    } else if (this.format === 'csv') {
      const [titles = '', row = ''] = this.#lines([item], view, item).split('\r\n');
      await this.#writeAll(`${isFirst ? `${titles}\r\n` : ''}${row}\r\n`);
    } else {
      await this.#writeAll(this.format === 'id' ? this.#lines([item], view, item) : `${visibleJson(item)}\n`);
    }
  }

  /**
   * Shows the current state of an item, repeatedly. On a terminal it redraws the item in place, with a failure below it.
   * Otherwise it writes as `stream` does, and reports a failure once, when it begins.
   */
  async refresh<T extends object>(item: T, view: View<T>, failure: Failure | null): Promise<void> {
    if (this.isForPeople && this.#drawsInPlace) {
      const { detailOf } = await import('../console/table.js');
      const render = await this.#renderOptions();
      await this.#redraw(detailOf(item, view, render), failure, render);
      return;
    }
    this.#failOnce(failure);
    if (!this.isForPeople) {
      await this.stream(item, view);
      return;
    }
    await this.one(item, view);
    this.text('');
  }

  /**
   * Shows the current state of a list, repeatedly. On a terminal it redraws the list in place, as many items as fit.
   * Otherwise it writes new and changed items as `stream` does.
   *
   * @param total the number of items, including those not shown.
   */
  async refreshList<T extends object>(
    items: readonly T[],
    view: View<T>,
    { total, failure }: { total: number; failure: Failure | null },
  ): Promise<void> {
    if (this.isForPeople) {
      const { tableOf } = await import('../console/table.js');
      const render = await this.#renderOptions();
      const room = Math.max(1, (this.#shell.stdout.rows ?? DEFAULT_ROWS) - ROWS_AROUND);
      const shown = this.#drawsInPlace ? items.slice(0, room) : items;
      const table = `${await tableOf(shown, view.columns, render)}${shown.length} of ${total}\n`;
      if (this.#drawsInPlace) await this.#redraw(table, failure, render);
      else {
        this.#failOnce(failure);
        await this.#writeAll(`${table}\n`);
      }
      return;
    }
    this.#failOnce(failure);
    for (const item of items) {
      const [id, text] = [view.idOf(item), visibleJson(item)];
      if (this.#lastShown.get(id) === text) continue;
      this.#lastShown.set(id, text);
      await this.stream(item, view);
    }
  }

  async #redraw(text: string, failure: Failure | null, render: RenderOptions): Promise<void> {
    const { rowsOf } = await import('../console/table.js');
    const lines = failure ? linesOf(failure) : [];
    const drawn = text + lines.map((line) => `${this.shown(line)}\n`).join('');
    const up = this.#lastFrame === '' ? '' : `\x1b[${await rowsOf(this.#lastFrame, render)}A\x1b[J`;
    this.#lastFrame = drawn;
    await this.#writeAll(up + drawn);
  }

  #failOnce(failure: Failure | null): void {
    if (failure && failure.message !== this.#lastFailure) this.fail(failure);
    this.#lastFailure = failure?.message ?? null;
  }

  /** Whether the terminal can redraw in place, and no trace messages are written in between. */
  get #drawsInPlace(): boolean {
    return this.#isOnTerminal && this.#shell.env.TERM !== 'dumb' && !this.#options.verbose;
  }

  /**
   * Prepares for a long list or a stream, with one line per item.
   *
   * @param fallback the format, unless another one was requested.
   * @returns a function that writes a batch of items, and resolves when the reader has accepted them.
   */
  linesAs<T extends object>(fallback: 'table' | 'jsonl', view: View<T>): (items: readonly T[]) => Promise<void> {
    const { renderer } = this.#options;
    // One JSON value for the whole list would have to wait for its end.
    const format =
      this.format === 'csv' || this.format === 'id' ? this.format : this.format === 'table' ? fallback : 'jsonl';
    const isTable = this.isForPeople && (fallback === 'table' || this.#options.isTableRequested);
    let isBegun = false;
    return async (items) => {
      if (renderer || isTable) {
        for (const item of items) await this.stream(item, view);
        return;
      }
      const text = this.#lines(items, view, items, format);
      await this.#writeAll(isBegun && format === 'csv' ? text.slice(text.indexOf('\n') + 1) : text);
      isBegun = true;
    };
  }

  /** Data that is the same in every format, such as a script. */
  text(data: string): void {
    this.#write(`${data}\n`);
  }

  /** A part of data that is the same in every format. Resolves when the reader has accepted it. */
  async piece(data: string): Promise<void> {
    await this.#writeAll(data);
  }

  /**
   * Announces a secret, which is shown only once. If it cannot be written, because the device is full or the reader of a pipe is gone,
   * its owner is named: it can be used by nobody, and its user cannot know it.
   *
   * @param idNow the token or operator whose secret is being written.
   */
  secretOf(idNow: () => string, owner?: SecretOwner): void {
    // Before the program's own listener, which ends the process.
    this.#shell.stdout.prependOnceListener('error', (error: NodeJS.ErrnoException) => {
      this.fail(lostSecret(idNow(), error, '', owner));
    });
  }

  /** Whether the data is a table with titles, rather than lines separated by tabs. */
  get isForPeople(): boolean {
    return this.format === 'table' && (this.#isOnTerminal || this.#options.isTableRequested === true);
  }

  /** Columns of the terminal. In a file or a pipe nothing needs to be cut. */
  get width(): number {
    return this.#isOnTerminal ? this.#shell.stdout.columns || DEFAULT_WIDTH : Infinity; // Some pseudo-terminals report 0.
  }

  get #isOnTerminal(): boolean {
    return this.#shell.stdout.isTTY === true;
  }

  async #rendered<T extends object>(items: readonly T[], view: View<T>, whole: unknown): Promise<string> {
    return this.#options.renderer?.all(whole, items, view.fields) ?? this.#lines(items, view, whole);
  }

  #lines<T extends object>(items: readonly T[], view: View<T>, whole: unknown, format = this.format): string {
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

  #write(data: string): void {
    this.endProgress();
    this.#shell.stdout.write(data);
  }

  async #writeAll(data: string): Promise<void> {
    this.endProgress();
    const { stdout } = this.#shell;
    if (stdout.write(data)) return;
    await new Promise<void>((resolve) => stdout.once('drain', resolve));
  }

  /** Writes to the terminal, with a pager if the text is longer than the screen. */
  async #writePaged(text: string, render: RenderOptions): Promise<void> {
    const { env, stdout } = this.#shell;
    if (this.#options.pager && stdout.rows) {
      const [{ pagerIn }, { rowsOf }] = await Promise.all([import('./pager.js'), import('../console/table.js')]);
      const pager = pagerIn(env);
      this.endProgress();
      // The last row of the screen is for the prompt of the shell.
      if (pager && (await rowsOf(text, render)) >= stdout.rows && (await this.#shell.page(pager, text))) return;
    }
    this.#write(text);
  }

  async #renderOptions(): Promise<RenderOptions> {
    const { default: pc } = await import('picocolors');
    const { env } = this.#shell;
    return {
      colors: pc.createColors(this.#isOnTerminal && this.#options.color && !env.NO_COLOR && env.TERM !== 'dumb'),
      ascii: isAscii(env),
      width: this.width,
      now: this.#shell.now(),
    };
  }
}

/** What has a secret that is shown only once, and the command that ends it. */
export interface SecretOwner {
  noun: 'token' | 'operator';
  end: 'revoke' | 'deactivate';
}

export const OF_TOKEN: SecretOwner = { noun: 'token', end: 'revoke' };

/** Such as `Revoke the token: llmp token revoke ID`. @param lost words about the secret. */
export const endAdvice = (id: string, { noun, end }: SecretOwner, lost = ''): string =>
  `${end.charAt(0).toUpperCase()}${end.slice(1)} the ${noun}${lost}: llmp ${noun} ${end} ${id}`;

/** The failure for a token or operator whose secret could not be written. */
export const lostSecret = (id: string, error: unknown, where = '', owner = OF_TOKEN): Failure =>
  new Failure(EXIT.refused, `cannot write the secret of ${owner.noun} ${id}${where}; the secret is lost`, {
    code: 'secret_lost',
    why: (error as NodeJS.ErrnoException).code ?? 'failed',
    advice: endAdvice(id, owner),
    cause: error,
  });

/** Whether to use ASCII only: LLMP_ASCII requests it, or the locale has another character set than UTF-8. */
export function isAscii({ LLMP_ASCII, LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean {
  if (LLMP_ASCII) return LLMP_ASCII !== '0';
  const locale = LC_ALL || LC_CTYPE || LANG;
  return locale ? !/utf-?8/i.test(locale) : false;
}

/** Renders data for programs, with the line end. */
export interface Renderer {
  /**
   * A list, or an object.
   *
   * @param whole the value that `-o json` prints. @param items the rows of a table of the same data. @param fields those that an item can
   * have.
   */
  all(whole: unknown, items: readonly object[], fields: readonly string[]): string | Promise<string>;
  /** Checks an expression before a command changes something. @throws {Failure} for a field that what it prints does not have. */
  check?(fields: readonly string[]): void;
  /** An item of a stream. */
  next(item: object, fields: readonly string[]): string | Promise<string>;
}
