#!/usr/bin/env -S node --
import { EXIT } from './failure.js';
import { run } from './program.js';

const { argv, env, stdin, stdout, stderr } = process;

// `llmp token list | head` is no error: whoever reads has had enough.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(EXIT.closedPipe);
  });
}

process.exitCode = await run(argv.slice(2), { env, stdin, stdout, stderr, now: () => Date.now() });
