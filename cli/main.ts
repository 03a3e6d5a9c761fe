#!/usr/bin/env -S node --
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { shellWord } from './escape.js';
import { EXIT } from './failure.js';
import { run } from './program.js';

const { argv, env, stdin, stdout, stderr } = process;

// Every command holds a credential, and some ways to it are open unless one closes them.
process.umask(0o077); // Files, a database first of all, are for this user alone.
process.on('SIGUSR1', () => undefined); // Without a listener it opens the inspector, and with it everything in memory.
const NO_REPORTS = { reportOnFatalError: false, reportOnSignal: false, reportOnUncaughtException: false };
Object.assign(process.report, NO_REPORTS); // The whole environment would be in them.
if (argv.some((word) => word.startsWith('--management-token'))) process.title = 'llmp'; // All that `ps` shows from now on.

// `llmp token list | head` is no error: whoever reads has had enough.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(EXIT.closedPipe);
  });
}

function program(): string {
  if (env.npm_command === 'exec') return 'npx llmp';
  const script = argv[1] ?? '';
  return basename(script) === 'llmp' ? 'llmp' : `node ${shellWord(script)}`;
}

function interrupted(): Promise<void> {
  return new Promise((resolve) => {
    // They stay: the ^C that the terminal sends is sent once more by npm, and would cut the cleaning up short.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        resolve();
      });
    }
  });
}

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => undefined);

const shell = { env, stdin, stdout, stderr, now: () => Date.now(), pause, program: program(), interrupted };
process.exitCode = await run(argv.slice(2), shell);
