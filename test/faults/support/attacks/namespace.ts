/** Runs a command where the kernel's socket buffers are small, so that what is not read waits in the daemon and not in the kernel. */
import { spawn, spawnSync } from 'node:child_process';

/** Minimum, default and maximum of the socket buffers of a connection, in bytes. */
const BUFFER_BYTES = '4096 8192 8192';

/** @returns why it cannot be done here; null if it can. */
export function whyNoNamespace(): string | null {
  if (process.getuid?.() !== 0) return 'small socket buffers need a network namespace, and that needs root';
  const name = `llmp-probe-${process.pid}`;
  const made = spawnSync('ip', ['netns', 'add', name], { encoding: 'utf8' });
  if (made.error) return 'small socket buffers need iproute2';
  if (made.status !== 0) return `small socket buffers need a network namespace: ${made.stderr.trim()}`;
  spawnSync('ip', ['netns', 'delete', name]);
  return null;
}

/** SIGTERM and SIGINT are passed on to the command. @returns its exit code. */
export async function inSmallNamespace(command: readonly string[]): Promise<number> {
  const name = `llmp-attack-${process.pid}`;
  const ip = (...args: string[]) => {
    const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`);
  };
  ip('netns', 'add', name);
  try {
    const within = (...args: string[]) => {
      ip('netns', 'exec', name, ...args);
    };
    within('ip', 'link', 'set', 'lo', 'up');
    // With its default of 64 KiB one segment would be more than the buffers.
    within('ip', 'link', 'set', 'lo', 'mtu', '1500');
    for (const which of ['rmem', 'wmem']) within('sysctl', '-qw', `net.ipv4.tcp_${which}=${BUFFER_BYTES}`);
    const child = spawn('ip', ['netns', 'exec', name, ...command], { stdio: 'inherit' });
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => child.kill(signal));
    return await new Promise((resolve) => {
      child.once('exit', (code) => {
        resolve(code ?? 1);
      });
    });
  } finally {
    spawnSync('ip', ['netns', 'delete', name]);
  }
}
