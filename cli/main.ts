#!/usr/bin/env -S node --
import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { shellWord } from '../console/escape.js';
import { EXIT } from '../console/failure.js';
import { run } from './program.js';
import type { EndingSignal, Shell } from './shell.js';

const { argv, env } = process;

// Every command holds a credential. The following lines close the ways on which Node.js would expose it.
const umask = process.umask(0o077); // New files, such as a database, are readable by this user only.
process.on('SIGUSR1', () => undefined); // Without a listener, SIGUSR1 opens the inspector, which can read all memory.
const NO_REPORTS = { reportOnFatalError: false, reportOnSignal: false, reportOnUncaughtException: false };
Object.assign(process.report, NO_REPORTS); // Reports contain the whole environment.
if (argv.some((word) => word.startsWith('--management-token'))) process.title = 'llmp'; // Hides the arguments from `ps`.

// The longest time that a shell waits for completions, even if a file system or name server does not respond.
const COMPLETION_TIMEOUT_MS = 800;
if (argv[2] === '__complete') {
  const end = () => process.kill(process.pid, 'SIGKILL'); // An orderly exit would wait for pending file and DNS operations.
  setTimeout(end, COMPLETION_TIMEOUT_MS - process.uptime() * 1000).unref();
}

// Node.js creates a standard stream when it is first used, which takes up to 5 ms. Most commands use only one of them.
const streams: Partial<Record<'stdout' | 'stderr', NodeJS.WriteStream & { fd: 1 | 2 }>> = {};

// A closed pipe is not an error: in `llmp token list | head` the reader stops early.
function outputStream(name: 'stdout' | 'stderr') {
  return (streams[name] ??= process[name].on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.closedPipe);
    const reason = error.code ?? error.message;
    if (name === 'stdout') outputStream('stderr').write(`llmp: cannot write the output\n  ${reason}\n`);
    process.exit(EXIT.refused);
  }));
}

function program(): string {
  if (env.npm_command === 'exec') return 'npx llmp';
  const script = argv[1] ?? '';
  if (basename(script) !== 'llmp') return `node ${shellWord(script)}`;
  // In the folder of a tarball a launcher starts it, and the PATH has a link to that only after an installation.
  const launcher = script.replace(/\/libexec\/llmp$/, '/bin/llmp');
  return launcher === script || isInPath(launcher) ? 'llmp' : shellWord(launcher);
}

function isInPath(program: string): boolean {
  return (env.PATH ?? '').split(':').some((folder) => {
    try {
      return realpathSync(join(folder, basename(program))) === program;
    } catch {
      return false; // There is none in this folder.
    }
  });
}

function interrupted(): Promise<EndingSignal> {
  return new Promise((resolve) => {
    // The listeners are never removed: npm repeats the terminal's ^C, which would interrupt the cleanup.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        resolve(signal);
      });
    }
  });
}

function onSignal(listener: (signal: EndingSignal) => void): void {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, listener);
}

async function interruptible<T>(work: Promise<T>, cancel: (signal: EndingSignal) => void): Promise<T> {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, cancel);
  try {
    return await work;
  } finally {
    for (const signal of signals) process.off(signal, cancel);
  }
}

function start(file: string, args: readonly string[], childEnv: NodeJS.ProcessEnv) {
  const ours = process.umask(umask);
  try {
    return spawn(file, args, { env: childEnv, stdio: 'inherit' });
  } finally {
    process.umask(ours);
  }
}

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => undefined);

const shell: Shell = {
  env,
  get stdin() {
    return process.stdin;
  },
  get stdout() {
    return outputStream('stdout');
  },
  get stderr() {
    return outputStream('stderr');
  },
  now: () => Date.now(),
  pause,
  get program() {
    return program();
  },
  interrupted,
  onSignal,
  interruptible,
  terminal: async () => (await import('../console/terminal-io.js')).terminalIo(process),
  async page(pager, text) {
    const [{ paged }, { withoutSecrets }] = await Promise.all([import('./pager.js'), import('../config/settings.js')]);
    // A pager can start other programs, which need no credential.
    return paged(pager, text, withoutSecrets(env));
  },
  spawn: start,
};
process.exitCode = EXIT.crash; // If the process ends before the command.
void run(argv.slice(2), shell).then((exitCode) => {
  process.exitCode = exitCode;
});
