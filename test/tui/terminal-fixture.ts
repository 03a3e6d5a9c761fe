/** `llmp tui` in a real terminal with a real daemon, which can be killed and restarted. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireAuditRecord, WireProject, WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { MAIN } from '../cli/processes.js';
import { MANAGEMENT_TOKEN, temporaryFolder, UPSTREAM_KEY } from '../support/daemon.js';
import { type DaemonProcess, launchDaemon } from '../support/process.js';
import { freePort } from '../support/ports.js';
import { Terminal, type TerminalOptions } from '../support/tmux.js';

export interface Watching extends TerminalOptions {
  args?: readonly string[];
}

export class TerminalFixture {
  readonly port: number;
  /** The file of its SQLite database. */
  readonly database: string;
  readonly #env: Record<string, string>;
  readonly #terminals: Terminal[] = [];
  readonly #folder = temporaryFolder();
  #life: DaemonProcess | null = null;

  private constructor(port: number, database: string, env: Record<string, string>) {
    this.port = port;
    this.database = database;
    this.#env = env;
  }

  /** A daemon with a project `web`, and the contexts `here`, `guarded` (protected), `shown` (read-only) and `wrong` (wrong token). */
  static async open(env: Record<string, string> = {}): Promise<TerminalFixture> {
    const port = await freePort();
    const database = join(temporaryFolder(), 'llmp.db');
    const stage = new TerminalFixture(port, database, {
      MANAGEMENT_TOKEN,
      DATABASE_URL: `sqlite:${database}`,
      LISTEN_ADDR: `127.0.0.1:${port}`,
      UPSTREAM_BASE_URL: 'http://127.0.0.1:9',
      ...env,
    });
    await stage.begin();
    stage.#writeContexts();
    return stage;
  }

  get server(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get folder(): string {
    return this.#folder;
  }

  async begin(): Promise<void> {
    this.#life = launchDaemon(this.#env);
    await this.#life.listening;
  }

  async kill(): Promise<void> {
    await this.#life?.kill();
    this.#life = null;
  }

  /** Makes the daemon hang: it keeps its connections, and sends no responses until `resume`. */
  hang(): void {
    this.#life?.child.kill('SIGSTOP');
  }

  resume(): void {
    this.#life?.child.kill('SIGCONT');
  }

  async close(): Promise<void> {
    this.resume();
    await Promise.all(this.#terminals.splice(0).map((terminal) => terminal.close()));
    await this.kill();
  }

  /** Starts the program in its own terminal. The management token is in a file of the context, not on the command line. */
  async watch({ args = [], env = {}, ...options }: Watching = {}): Promise<Terminal> {
    const argv = [process.execPath, '--', MAIN, 'tui', ...args];
    return this.terminal(argv, { ...options, env });
  }

  async terminal(argv: readonly string[], { env = {}, ...options }: TerminalOptions = {}): Promise<Terminal> {
    const all = { LLMP_CONFIG: this.config, HOME: this.#folder, ...env };
    const terminal = await Terminal.open(argv, { cwd: this.#folder, ...options, env: all });
    this.#terminals.push(terminal);
    return terminal;
  }

  get config(): string {
    return join(this.#folder, 'config.toml');
  }

  #writeContexts(): void {
    mkdirSync(this.#folder, { recursive: true });
    const write = (name: string, content: string) => {
      const path = join(this.#folder, name);
      writeFileSync(path, content, { mode: 0o600 });
      return path;
    };
    const right = write('management-token', `${MANAGEMENT_TOKEN}\n`);
    const wrong = write('wrong-token', 'this-is-not-the-management-token\n');
    const context = (name: string, tokenFile: string, more = '') =>
      `[contexts.${name}]\nserver = "${this.server}"\ntoken_file = "${tokenFile}"\n${more}\n`;
    write(
      'config.toml',
      [
        'current = "here"\n',
        context('here', right),
        context('guarded', right, 'protected = true'),
        context('shown', right, 'readonly = true'),
        context('wrong', wrong),
      ].join('\n'),
    );
  }

  async project(name = 'web'): Promise<WireProject> {
    return this.manage<WireProject>('POST', '/manage/projects', { name, api_key: UPSTREAM_KEY });
  }

  /** Creates a token with this name and lifetime in hours. */
  async token(projectId: string, name: string, hours = 24): Promise<WireToken> {
    const body = { project_id: projectId, name, duration_hours: hours };
    const { id } = await this.manage<WireTokenCreated>('POST', '/manage/tokens', body);
    return this.manage<WireToken>('GET', `/manage/tokens/${id}`);
  }

  tokens(query = ''): Promise<WireToken[]> {
    return this.manage<WireToken[]>('GET', `/manage/tokens?limit=1000${query}`);
  }

  async tokenNamed(name: string): Promise<WireToken> {
    const found = (await this.tokens()).find((token) => token.name === name);
    if (!found) throw new Error(`there is no token ${name}`);
    return found;
  }

  audit(action: string): Promise<WireAuditRecord[]> {
    return this.manage<WireAuditRecord[]>('GET', `/manage/audit?action=${action}`);
  }

  async manage<T>(method: string, path: string, body?: unknown): Promise<T> {
    return (await (await this.ask(path, method, body)).json()) as T;
  }

  async ask(path: string, method = 'GET', body?: unknown): Promise<Response> {
    const response = await fetch(this.server + path, {
      method,
      headers: { authorization: `Bearer ${MANAGEMENT_TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  }
}
