/**
 * Writes the code cache of a bundle: `node code-cache.js PATH`. V8 compiles a function when it is first called, so this process runs a few
 * common commands against a stand-in for the daemon, and then stores what V8 has compiled.
 */
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { codeCacheOf, scriptOf, start } from '../cli/bundled-program.js';
import { projectExample, tokenExample } from '../daemon/api/schemas.js';

const [node = '', , bundle = ''] = process.argv;
const require = createRequire(bundle);

const server = createServer((req, res) => {
  const items = req.url?.startsWith('/manage/tokens') ? [tokenExample] : [projectExample];
  const body = Buffer.from(JSON.stringify(items));
  // Without it a command would end only when the client closes its idle connection, after seconds.
  res.setHeader('connection', 'close').setHeader('content-type', 'application/json').end(body);
}).unref();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

const home = mkdtempSync(join(tmpdir(), 'llmp-code-cache-'));
Object.assign(process.env, {
  HOME: home,
  LLMP_CONFIG: join(home, 'config.toml'),
  LLMP_SERVER: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  MANAGEMENT_TOKEN: 'of-the-stand-in-'.padEnd(40, '0'),
});

// Every build must call the same functions, on a slow machine and on any day: timers never fire, and the time is constant.
const { setTimeout: begin } = globalThis;
globalThis.setTimeout = ((_: unknown, ms?: number) => begin(() => undefined, ms).unref()) as typeof setTimeout;
const nowMs = Date.parse(tokenExample.created_at);
Date.now = () => nowMs;
performance.now = () => 0;
process.uptime = () => 0;

// The cache contains this name. With the path it would depend on the folder of the build.
const script = scriptOf(bundle, undefined, 'llmp.cjs');
const commands = [
  { args: ['token', 'list'], isTerminal: false },
  { args: ['token', 'list'], isTerminal: true },
  // With an option before it there is no time limit.
  { args: ['-q', '__complete', '--', 'token', 'revoke', ''], isTerminal: false },
  { args: ['-q', '__complete', '--', 'tok'], isTerminal: false },
];

// A command has ended when the process has nothing left to do.
process.on('beforeExit', () => {
  // A command fails if connecting takes too long. The cache would then contain how errors are reported.
  if (process.exitCode) process.exit();
  const command = commands.shift();
  if (command) {
    process.argv = [node, bundle, ...command.args];
    process.stdout.isTTY = command.isTerminal;
    start(script, bundle, require, (id) => import(id));
    setImmediate(() => undefined); // The event is emitted again only after the event loop has run.
    return;
  }
  const written = `${codeCacheOf(bundle)}.${process.pid}`;
  // V8 rejects a cache that was written with other flags than its own.
  for (const flag of ['--hash-seed=0', '--flush-bytecode']) setFlagsFromString(flag);
  writeFileSync(written, script.createCachedData());
  chmodSync(written, 0o644);
  renameSync(written, codeCacheOf(bundle));
  rmSync(home, { recursive: true });
  process.exit(0);
});
