/** A daemon in a process of its own, to be killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const COMMAND = join(import.meta.dirname, '../../cli/main.js');

export interface DaemonProcess {
  child: ChildProcess;
  url: string;
  /** All it printed, log lines and complaints. */
  output: string[];
  /** Kills it as `kill -9` does, and waits until it is gone. */
  kill(): Promise<void>;
}

/** Starts `llmp daemon` and waits until it listens. @throws with what it printed, when it ends instead. */
export async function spawnDaemon(env: Record<string, string>, ...options: string[]): Promise<DaemonProcess> {
  // Whatever it may say, the scan for leaks is to see. The environment would win over an env file.
  const level = options.includes('--env-file') ? {} : { LOG_LEVEL: 'debug' };
  const child = spawn(process.execPath, ['--', COMMAND, 'daemon', ...options], {
    env: { PATH: process.env.PATH, LISTEN_ADDR: '127.0.0.1:0', ...level, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit');
  const output: string[] = [];
  createInterface(child.stderr).on('line', (line) => output.push(line));
  const listening = new Promise<string>((resolve) => {
    createInterface(child.stdout).on('line', (line) => {
      output.push(line);
      const { message, address } = JSON.parse(line) as { message: string; address?: string };
      if (message === 'listening' && address) resolve(address);
    });
  });
  const first = await Promise.race([listening, ended]);
  if (typeof first !== 'string') throw new Error(`the daemon ended instead of listening: ${output.join('\n')}`);
  return {
    child,
    url: `http://${first}`,
    output,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
