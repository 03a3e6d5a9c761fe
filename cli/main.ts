#!/usr/bin/env -S node --
import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { shellWord } from '../console/escape.js';
import { EXIT } from '../console/failure.js';
import { run } from './program.js';
import type { EndingSignal, Shell } from './shell.js';

const { argv, env, stdin, stdout, stderr } = process;

// Every command holds a credential, and some ways to it are open unless one closes them.
const umask = process.umask(0o077); // Files, a database first of all, are for this user alone.
process.on('SIGUSR1', () => undefined); // Without a listener it opens the inspector, and with it everything in memory.
const NO_REPORTS = { reportOnFatalError: false, reportOnSignal: false, reportOnUncaughtException: false };
Object.assign(process.report, NO_REPORTS); // The whole environment would be in them.
if (argv.some((word) => word.startsWith('--management-token'))) process.title = 'llmp'; // All that `ps` shows from now on.

// A shell that waits for what may come next waits no longer than this, whatever file or name server does not answer.
const COMPLETE_WITHIN_MS = 800;
if (argv[2] === '__complete') {
  const end = () => process.kill(process.pid, 'SIGKILL'); // An orderly exit would wait for them.
  setTimeout(end, COMPLETE_WITHIN_MS - performance.now()).unref();
}

// `llmp token list | head` is no error: whoever reads has had enough.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.closedPipe);
    if (stream === stdout) stderr.write(`llmp: cannot write the output\n  ${error.code ?? error.message}\n`);
    process.exit(EXIT.refused);
  });
}

function program(): string {
  if (env.npm_command === 'exec') return 'npx llmp';
  const script = argv[1] ?? '';
  return basename(script) === 'llmp' ? 'llmp' : `node ${shellWord(script)}`;
}

function interrupted(): Promise<EndingSignal> {
  return new Promise((resolve) => {
    // They stay: the ^C that the terminal sends is sent once more by npm, and would cut the cleaning up short.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        resolve(signal);
      });
    }
  });
}

function onSignal(hear: (signal: EndingSignal) => void): void {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, hear);
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
  stdin,
  stdout,
  stderr,
  now: () => Date.now(),
  pause,
  program: program(),
  interrupted,
  onSignal,
  terminal: async () => (await import('../console/terminal-io.js')).terminalIo(process),
  spawn: start,
};
process.exitCode = await run(argv.slice(2), shell);
