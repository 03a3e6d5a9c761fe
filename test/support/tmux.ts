/** A real terminal: a tmux with its own socket, which a test types into and reads. */
import { execFile, spawnSync } from 'node:child_process';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { shellWord } from '../../console/escape.js';
import { temporaryFolder } from './daemon.js';
import { eventually } from './eventually.js';
import { inspect } from './leaks.js';

const run = promisify(execFile);

/** Says why tests in a terminal are skipped here. Where everything must be installed, they fail instead. */
export const WITHOUT_TMUX =
  process.env.CI !== 'true' && spawnSync('tmux', ['-V']).error ? ' (skipped: no tmux here)' : '';

export interface TerminalOptions {
  columns?: number;
  rows?: number;
  /** The whole environment of the program, apart from PATH and what tmux sets. */
  env?: Record<string, string>;
  cwd?: string;
  /** Whether the program knows that it runs in tmux. */
  isTmuxKnown?: boolean;
}

export interface TerminalModes {
  isAlternate: boolean;
  hasCursor: boolean;
  wraps: boolean;
  hasMouse: boolean;
  /** Column and line, from 0. */
  at: string;
}

let terminals = 0;

export class Terminal {
  /** Also the name of the server, so that no other tmux is affected. */
  readonly #name = `llmp-test-${process.pid}-${++terminals}`;
  readonly #folder = temporaryFolder();
  #records = 0;
  /** The server's process, while it is stopped. */
  #frozen: number | undefined;

  private constructor() {
    // Made by `open`.
  }

  /** Runs a program in a new terminal. What it leaves there can be read after its end. */
  static async open(argv: readonly string[], options: TerminalOptions = {}): Promise<Terminal> {
    const { columns = 100, rows = 40, env = {}, cwd = '/', isTmuxKnown = false } = options;
    const terminal = new Terminal();
    const given = { PATH: process.env.PATH ?? '', LC_ALL: 'C.UTF-8', ...env };
    const clean = [
      'env',
      '-i',
      'TERM=tmux-256color',
      ...Object.entries(given).map(([name, value]) => `${name}=${value}`),
    ];
    const ofTmux = isTmuxKnown ? ['TMUX="$TMUX"', 'TMUX_PANE="$TMUX_PANE"'] : [];
    const line = [...clean.map(shellWord), ...ofTmux, ...argv.map(shellWord)].join(' ');
    // The shell stays for a moment to write the exit code. The pane stays for a later look.
    await terminal.#tmux(
      '-f',
      '/dev/null',
      'new-session',
      '-d',
      '-s',
      'test',
      '-x',
      String(columns),
      '-y',
      String(rows),
      '-c',
      cwd,
      `${line}; echo $? > ${shellWord(terminal.#exitFile)}; exec sleep 600`,
    );
    return terminal;
  }

  get #exitFile(): string {
    return join(this.#folder, 'exit');
  }

  /** Keys by tmux's names (`Enter`, `C-c`, `Down`), one after the other. */
  async press(...keys: string[]): Promise<void> {
    await this.#tmux('send-keys', '-t', 'test', ...keys);
  }

  /** Text, letter by letter. */
  async type(text: string): Promise<void> {
    await this.#tmux('send-keys', '-t', 'test', '-l', '--', text);
  }

  /** The same for text that may not be on a command line. */
  async typeSecret(text: string): Promise<void> {
    await this.#insert(text);
  }

  /** The same as a paste: bracketed if the program requested it. */
  async paste(text: string): Promise<void> {
    await this.#insert(text, '-p', '-r');
  }

  async #insert(text: string, ...options: string[]): Promise<void> {
    const path = join(this.#folder, 'inserted');
    await writeFile(path, text, { mode: 0o600 });
    await this.#tmux('load-buffer', '-b', 'inserted', path);
    await rm(path);
    await this.#tmux('paste-buffer', ...options, '-d', '-b', 'inserted', '-t', 'test');
  }

  /** Sends a signal to the program that is running. */
  async signal(signal: NodeJS.Signals): Promise<void> {
    process.kill(await this.program(), signal);
  }

  /** @returns the process ID of the running program: the youngest that was started here. */
  async program(): Promise<number> {
    const childrenOf = async (pid: number) => {
      const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
      return children.split(' ').filter(Boolean).map(Number);
    };
    let pid = Number(await this.#ask('#{pane_pid}'));
    for (let child: number | undefined; (child = (await childrenOf(pid)).at(-1)) !== undefined;) pid = child;
    return pid;
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#tmux('resize-window', '-t', 'test', '-x', String(columns), '-y', String(rows));
  }

  /** What is visible now, without spaces at the ends of lines. @param withPast includes everything that scrolled away. */
  async screen(withPast = false): Promise<string> {
    const text = await this.#tmux('capture-pane', '-p', '-t', 'test', '-J', ...(withPast ? ['-S', '-'] : []));
    inspect('screen of a terminal', text);
    return text.replace(/[ \t]+$/gm, '').trimEnd();
  }

  /** The same with colours, as escape sequences. */
  async colouredScreen(): Promise<string> {
    const text = await this.#tmux('capture-pane', '-p', '-e', '-t', 'test');
    inspect('screen of a terminal', text);
    return text;
  }

  /** The modes that programs turn on and off in a terminal, and the position of the cursor. */
  async modes(): Promise<TerminalModes> {
    const answer = await this.#ask(
      '#{alternate_on} #{cursor_flag} #{wrap_flag} #{mouse_any_flag} #{cursor_x},#{cursor_y}',
    );
    const [alternate, cursor, wrap, mouse, at = ''] = answer.split(' ');
    const isOn = (flag: string | undefined) => flag === '1';
    return { isAlternate: isOn(alternate), hasCursor: isOn(cursor), wraps: isOn(wrap), hasMouse: isOn(mouse), at };
  }

  /** What the next paste in tmux would insert; undefined: nothing. */
  async pasteBuffer(): Promise<string | undefined> {
    return this.#tmux('show-buffer').catch(() => undefined);
  }

  /** How many lines have scrolled out of sight. */
  async scrolled(): Promise<number> {
    return Number(await this.#ask('#{history_size}'));
  }

  /** Records from now on what programs write. @returns a function that reads the recording. */
  async record(): Promise<() => Promise<string>> {
    const path = join(this.#folder, `record-${++this.#records}`);
    await writeFile(path, '');
    await this.#tmux('pipe-pane', '-O', '-t', 'test', `exec cat >> ${shellWord(path)}`);
    return async () => {
      const text = await readFile(path, 'utf8');
      inspect('output to a terminal', text);
      return text;
    };
  }

  /** Waits until something is visible. @throws with what is visible instead. */
  async shows(what: RegExp | string | ((screen: string) => boolean), withinMs?: number): Promise<string> {
    let seen = '';
    const isThere = async () => {
      seen = await this.screen();
      if (typeof what === 'function') return what(seen);
      return typeof what === 'string' ? seen.includes(what) : what.test(seen);
    };
    await eventually(`${String(what)} is visible`, isThere, withinMs).catch((error: unknown) => {
      throw new Error(`${error instanceof Error ? error.message : ''}, but\n${seen}`, { cause: error });
    });
    return seen;
  }

  /** When the program ended, by `Date.now()`. Only after `exit`. */
  async endedMs(): Promise<number> {
    return (await stat(this.#exitFile)).mtimeMs;
  }

  /** Waits for the program's end. @returns its exit code. */
  async exit(): Promise<number> {
    let text = '';
    await eventually('the program ends', async () => {
      text = await readFile(this.#exitFile, 'utf8').catch(() => '');
      return text.endsWith('\n');
    });
    return Number(text);
  }

  /** The terminal stops reading what programs write, until `thaw`. */
  async freeze(): Promise<void> {
    this.#frozen = Number(await this.#ask('#{pid}'));
    process.kill(this.#frozen, 'SIGSTOP');
  }

  thaw(): void {
    if (this.#frozen !== undefined) process.kill(this.#frozen, 'SIGCONT');
    this.#frozen = undefined;
  }

  /** Closes the terminal, and ends what runs in it. */
  async close(): Promise<void> {
    this.thaw();
    await this.#tmux('kill-server').catch(() => undefined);
    // One test may have been permitted to see their contents; no other is.
    const records = Array.from({ length: this.#records }, (_, n) => join(this.#folder, `record-${n + 1}`));
    await Promise.all(records.map((path) => rm(path, { force: true })));
  }

  async #ask(format: string): Promise<string> {
    return (await this.#tmux('display-message', '-p', '-t', 'test', format)).trim();
  }

  async #tmux(...args: string[]): Promise<string> {
    const env = { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', TMUX_TMPDIR: this.#folder, HOME: this.#folder };
    const { stdout } = await run('tmux', ['-L', this.#name, ...args], { env });
    return stdout;
  }
}
