/** A daemon in a process of its own: to be killed, or to end by itself. */
import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

export const COMMAND = join(import.meta.dirname, '../../cli/main.js');

export interface DaemonProcess {
  child: ChildProcess;
  /** All it printed so far. */
  printed: { stdout: string; stderr: string };
  /** The lines of its standard output so far, which is its log. */
  logged: string[];
  /** Its exit code, null when a signal ended it. By then all it printed is there. */
  exit: Promise<number | null>;
  /** Its base URL, once it listens. Rejects with what it complained of when it ends instead. */
  listening: Promise<string>;
  /** Kills it as `kill -9` does, and waits until it is gone. */
  kill(): Promise<void>;
}

export interface ListeningDaemon extends DaemonProcess {
  url: string;
}

export interface LaunchOptions {
  /** Behind `llmp daemon`. */
  options?: readonly string[];
  /** For Node itself. */
  nodeOptions?: readonly string[];
  cwd?: string;
  /** What runs it: a command that becomes it, such as `prlimit --nofile=256`. */
  under?: readonly string[];
}

/** Beside the database, where the scan for leaks looks; none where only a file of settings says where that is. */
function auditFilesFor({ DATABASE_URL: path }: Record<string, string>): Record<string, string> {
  if (path === undefined) return { AUDIT_LOG_FILE: '', AUDIT_USE_LOG_FILE: '' };
  return { AUDIT_LOG_FILE: join(dirname(path.replace(/^sqlite:/, '')), 'audit.log') };
}

/** Starts `llmp daemon` with these settings and no others. */
export function launchDaemon(
  env: Record<string, string>,
  { options = [], nodeOptions = [], cwd, under = [] }: LaunchOptions = {},
): DaemonProcess {
  // Without the `--` Node 20 looks for an --env-file of its own.
  const [program = '', ...args] = [...under, process.execPath, ...nodeOptions, '--', COMMAND, 'daemon', ...options];
  const child = spawn(program, args, {
    cwd,
    env: { PATH: process.env.PATH, LISTEN_ADDR: '127.0.0.1:0', ...auditFilesFor(env), ...env },
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
      // No URL leads to a unix socket.
      resolve(`http://${address.startsWith('/') ? management : address}`);
    });
    void exit.then((code) => {
      reject(new Error(`the daemon ended with ${code} instead of listening: ${printed.stderr}`));
    });
  });
  listening.catch(() => undefined); // Not everybody waits for it.
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

/** Starts `llmp daemon` and waits until it listens. @throws with what it complained of, when it ends instead. */
export async function spawnDaemon(env: Record<string, string>, ...options: string[]): Promise<ListeningDaemon> {
  // Whatever it may say, the scan for leaks is to see. The environment would win over an env file.
  const level = options.includes('--env-file') ? {} : { LOG_LEVEL: 'debug' };
  const launched = launchDaemon({ ...level, ...env }, { options });
  return { ...launched, url: await launched.listening };
}
