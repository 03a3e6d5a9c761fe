/** A daemon in a separate process, which a test can kill. */
import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { TEST_WORKERS } from './test-workers.js';

export const COMMAND = join(import.meta.dirname, '../../cli/main.js');

export interface DaemonProcess {
  child: ChildProcess;
  /** Everything it printed so far. */
  printed: { stdout: string; stderr: string };
  /** The lines of its standard output so far, which is its log. */
  logged: string[];
  /** Its exit code; null if a signal ended it. By then all its output has been read. */
  exit: Promise<number | null>;
  /** Its base URL, once it listens. Rejects with its error output if it ends instead. */
  listening: Promise<string>;
  /** Kills it as `kill -9` does, and waits until it has ended. */
  kill(): Promise<void>;
}

export interface ListeningDaemon extends DaemonProcess {
  url: string;
}

export interface LaunchOptions {
  /** Options after `llmp daemon`. */
  options?: readonly string[];
  /** For Node itself. */
  nodeOptions?: readonly string[];
  cwd?: string;
  /** A command that runs it and is replaced by it, such as `prlimit --nofile=256`. */
  under?: readonly string[];
  /** The program, if it is not that of this build: `dist/cli/main.js` of another one. */
  program?: string;
}

/** Beside the database, where the scan for leaks looks; none if only a settings file says where the database is. */
function auditFilesFor({ DATABASE_URL: path }: Record<string, string>): Record<string, string> {
  if (path === undefined) return { AUDIT_LOG_FILE: '', AUDIT_USE_LOG_FILE: '' };
  return { AUDIT_LOG_FILE: join(dirname(path.replace(/^sqlite:/, '')), 'audit.log') };
}

/** Starts `llmp daemon` with only these settings. */
export function launchDaemon(
  env: Record<string, string>,
  { options = [], nodeOptions = [], cwd, under = [], program: command = COMMAND }: LaunchOptions = {},
): DaemonProcess {
  // Without the `--`, Node 20 would look for an --env-file itself.
  const [program = '', ...args] = [...under, process.execPath, ...nodeOptions, '--', command, 'daemon', ...options];
  const child = spawn(program, args, {
    cwd,
    env: {
      PATH: process.env.PATH,
      LISTEN_ADDR: '127.0.0.1:0',
      ...auditFilesFor(env),
      ...(TEST_WORKERS !== undefined && { WORKERS: TEST_WORKERS }),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const printed = { stdout: '', stderr: '' };
  const logged: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed.stderr += text));
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  const listening = new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      logged.push(line);
      if (!line.includes('"message":"listening"')) return;
      const { address, management } = JSON.parse(line) as { address: string; management?: string };
      // A unix socket has no URL.
      resolve(`http://${address.startsWith('/') ? management : address}`);
    });
    void exit.then((code) => {
      reject(new Error(`the daemon ended with ${code} instead of listening: ${printed.stderr}`));
    });
  });
  listening.catch(() => undefined); // Not every caller waits for it.
  return {
    child,
    printed,
    logged,
    exit,
    listening,
    async kill() {
      child.kill('SIGKILL');
      await exit;
    },
  };
}

/** Starts `llmp daemon` and waits until it listens. @throws with its error output if it ends instead. */
export async function spawnDaemon(env: Record<string, string>, ...options: string[]): Promise<ListeningDaemon> {
  // The scan for leaks must see everything it can log. The environment would override an env file.
  const level = options.includes('--env-file') ? {} : { LOG_LEVEL: 'debug' };
  const launched = launchDaemon({ ...level, ...env }, { options });
  return { ...launched, url: await launched.listening };
}
