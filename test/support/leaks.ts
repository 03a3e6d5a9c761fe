/**
 * The scan for leaks: everything that the suite outputs passes through here while it runs, and no secret may be in it. canaries.ts defines
 * which secrets are recognised. `root-hooks.ts` fails the run with the findings.
 * Only findings take memory: a text is scanned as it passes, a stream together with as much of its past as a secret can be long.
 */
import { ChildProcess } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { entriesBelow } from '../../packaging/files.js';
import { type Found, MAX_ENCODED_LENGTH, secretsIn } from './canaries.js';

export interface Leak {
  /** Where a secret appeared. */
  sink: string;
  /** Which secret, as far as it may be printed. */
  secret: string;
  /** The test that was running. */
  test: string;
}

interface Exemption {
  sink: RegExp;
  secrets: readonly Found['kind'][];
  because: string;
}

/** Where secrets are allowed. The scan has no other exceptions than a line here, or `permit` in a test. */
const EXEMPTIONS: readonly Exemption[] = [
  { sink: /^response to POST \/manage\/tokens$/, secrets: ['token'], because: 'the one response that shows a token' },
  { sink: /^response to POST \/token\/exchange$/, secrets: ['token'], because: 'the same for a JWT' },
  { sink: /^response to POST \/manage\/operators$/, secrets: ['operator'], because: 'the one that shows an operator' },
  {
    sink: /^response to POST \/manage\/login\/device\/finish$/,
    secrets: ['session'],
    because: 'the same for a session',
  },
  {
    sink: /^stdout of llmp (?:manage )?operator create$/,
    secrets: ['operator'],
    because: 'the same on a command line',
  },
  {
    sink: /^response to GET (?:\/\w+)?\/tokens\/[\w-]+\/secret$/,
    secrets: ['token'],
    because: 'the one page that shows a token',
  },
  {
    sink: /^stdout of llmp (?:manage )?token (?:generate|print|exchange)$/,
    secrets: ['token'],
    because: 'the same for an operator',
  },
  { sink: /^stdout of llmp demo$/, secrets: ['token'], because: 'with --json, for a program' },
  { sink: /^file demo-variables$/, secrets: ['token'], because: 'the variables of the commands that the demo prints' },
  { sink: /^(?:command line|stdout) of bash$/, secrets: ['token'], because: 'what the demo printed is pasted' },
  { sink: /^forwarded response /, secrets: ['token', 'client'], because: 'a provider may repeat what its client sent' },
  { sink: /^file (?:llmp\.env|token|management-token)$/, secrets: ['management'], because: 'a setting in a file' },
  { sink: /^file (?:database-url|redis-password)$/, secrets: ['password'], because: 'a setting in a file' },
  { sink: /^file dispatcher-key$/, secrets: ['dispatcher'], because: 'a setting in a file' },
  { sink: /^file key\.txt$/, secrets: ['upstream'], because: 'a key for the command line' },
  {
    sink: /^file (?:token\.txt|secrets[\w-]*\.(?:csv|jsonl?))$/,
    secrets: ['token'],
    because: 'where `token generate --out` is to put it',
  },
  { sink: /^file [\w.-]+\.session$/, secrets: ['session'], because: 'where `llmp login` stores it' },
  { sink: /^file (?:[\w.-]+-)?secret$/, secrets: ['operator'], because: 'where an operator is created to put it' },
  { sink: /^file [^ ]*\.key$/, secrets: ['encryption', 'unknown'], because: 'the key file beside a database' },
];

const MOST_KEPT = 1_000;
let leaks: Leak[] = [];
let test = 'before the first test';
let permitted: Exemption[] = [];

/** Called by the root hooks. The permissions of the previous test end. */
export function testBegins(title: string): void {
  test = title;
  permitted = [];
}

/** For a test that itself puts secrets in a wrong place: permitted until its end. */
export function permit(sink: RegExp, secrets: readonly Found['kind'][], because: string): void {
  permitted.push({ sink, secrets, because });
}

/** The findings since the last call. */
export function takeLeaks(): readonly Leak[] {
  const taken = leaks;
  leaks = [];
  return taken;
}

/** Leaks that are found while `action` runs are returned to the caller and do not fail the run. */
export async function leaksOf(action: () => unknown): Promise<Leak[]> {
  const before = leaks;
  leaks = [];
  try {
    await action();
    return leaks;
  } finally {
    leaks = before;
  }
}

/** Scans what goes to a sink for secrets. @returns whether there was any, leak or not. */
export function inspect(sink: string, text: string | Uint8Array): boolean {
  const secrets = secretsIn(text);
  for (const { kind, shown } of secrets) {
    const isExempt = (it: Exemption) => it.sink.test(sink) && it.secrets.includes(kind);
    if (EXEMPTIONS.some(isExempt) || permitted.some(isExempt)) continue;
    const isKnown = leaks.some((leak) => leak.sink === sink && leak.secret === shown && leak.test === test);
    if (!isKnown && leaks.length < MOST_KEPT) leaks.push({ sink, secret: shown, test });
  }
  return secrets.length > 0;
}

/** @returns a function that scans what goes to a sink in pieces, and returns whether there was any secret. */
export function inspector(sink: string): (piece: string | Uint8Array) => boolean {
  let rest = '';
  return (piece) => {
    const text = rest + (typeof piece === 'string' ? piece : Buffer.from(piece).toString('latin1'));
    // A finding must not be found again with the next piece.
    const hasSecrets = inspect(sink, text);
    rest = hasSecrets ? '' : text.slice(-MAX_ENCODED_LENGTH);
    return hasSecrets;
  };
}

// ---- responses of a daemon in this process

/** How much is scanned of a forwarded response, whose bytes are the provider's. */
const MOST_FORWARDED = 64 * 1024;

/** Scans the bytes that a server sends, for any client and any request. */
export function inspectAnswers(server: Server): void {
  server.on('connection', (socket: Socket & { _httpMessage?: ServerResponse | null }) => {
    let response: ServerResponse | null | undefined;
    let look: (piece: string | Uint8Array) => unknown = () => undefined;
    let left = 0;
    const onPiece = (piece: unknown, encoding: BufferEncoding) => {
      const bytes = typeof piece === 'string' ? Buffer.from(piece, encoding) : (piece as Uint8Array);
      const { _httpMessage: current = null } = socket;
      if (response === undefined || current !== response) {
        response = current;
        // Only a forwarded response states how long the upstream took.
        const isForwarded = Buffer.from(bytes).includes('\r\nServer-Timing: ');
        look = inspector(`${isForwarded ? 'forwarded response' : 'response'} to ${requestOf(current)}`);
        left = isForwarded ? MOST_FORWARDED : Infinity;
      }
      if (left > 0) look(bytes);
      left -= bytes.length;
    };
    const write = socket._write.bind(socket);
    const writev = socket._writev?.bind(socket);
    socket._write = (piece, encoding, done) => {
      onPiece(piece, encoding);
      write(piece, encoding, done);
    };
    socket._writev = (pieces, done) => {
      for (const { chunk, encoding } of pieces) onPiece(chunk, encoding);
      writev?.(pieces, done);
    };
  });
}

function requestOf(response: ServerResponse | null): string {
  if (!response) return 'what is no request';
  const { method, url } = response.req;
  return `${method ?? ''} ${(url ?? '').replace(/\?.*/, '')}`;
}

// ---- processes

/** Scans the command line of every process that is spawned from now on, and what it prints. */
export function inspectProcesses(): void {
  type Spawn = (this: ChildProcess, options: { args?: string[] }) => unknown;
  const prototype = ChildProcess.prototype as ChildProcess & { spawn: Spawn };
  const { spawn } = prototype;
  prototype.spawn = function (options) {
    const name = nameOf(options.args ?? []);
    inspect(`command line of ${name}`, (options.args ?? []).join(' '));
    const result = spawn.call(this, options);
    for (const output of ['stdout', 'stderr'] as const) inspectReadable(this[output], `${output} of ${name}`);
    return result;
  };
}

/** Not with a listener, which would start the flow of the stream before its reader is ready. */
function inspectReadable(readable: Readable | null, sink: string): void {
  if (!readable) return;
  const look = inspector(sink);
  const push = readable.push.bind(readable);
  readable.push = (piece: string | Uint8Array | null, encoding) => {
    if (piece !== null) look(piece);
    return push(piece, encoding);
  };
}

/** `llmp` with its command, or the program. */
function nameOf(args: readonly string[]): string {
  const script = args.findIndex((arg) => /(?:cli\/main\.js|\/bin\/llmp)$/.test(arg));
  return script === -1 ? basename(args[0] ?? '') : commandOf(args.slice(script + 1));
}

/** The words of a command line up to the first option: `llmp token generate`. */
export function commandOf(args: readonly string[]): string {
  const end = args.findIndex((arg) => !/^[a-z-]+$/.test(arg) || arg.startsWith('-'));
  return ['llmp', ...args.slice(0, end === -1 ? args.length : end)].join(' ');
}

/** Scans what this process prints, including mocha's report. */
export function inspectOwnOutput(): void {
  for (const name of ['stdout', 'stderr'] as const) {
    const stream = process[name];
    const look = inspector(`own ${name}`);
    const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
    stream.write = (...args: unknown[]) => {
      look(args[0] as string | Uint8Array);
      return write(...args);
    };
  }
}

// ---- files

const folders = new Set<string>();
const piece = Buffer.alloc(1024 * 1024);
/** The files without any secret, each with its state when it was read. */
const inspected = new Map<string, string>();
/** A file can change twice within one step of the file system's clock. */
const CLOCK_STEP_MS = 50;

/** Scans everything in the folder when the run, or the test file, ends. */
export function watchFolder(path: string): void {
  folders.add(path);
}

export function inspectFolders(): void {
  for (const folder of folders) inspectFiles(folder);
  folders.clear();
}

/** Scans the bytes of every file in a folder, but follows no link. @param except a file that is scanned later. */
export function inspectFiles(folder: string, except?: string): void {
  for (const { entry, path } of entriesOf(folder)) {
    if (entry.isFile() && path !== except) inspectFile(path);
  }
}

function entriesOf(folder: string) {
  try {
    return entriesBelow(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []; // Its owner has removed it.
    throw error;
  }
}

/** Null for a file that existed only for a moment, such as a journal of SQLite. */
function openUnlessGone(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Reads a file, unless it was read before and has not changed since. */
function inspectFile(path: string): void {
  const look = inspector(`file ${basename(path)}`);
  const file = openUnlessGone(path);
  if (file === null) return;
  try {
    const { ino, size, ctimeMs } = fstatSync(file);
    const state = `${ino} ${size} ${ctimeMs}`;
    if (inspected.get(path) === state) return;
    let mayBeSkipped = Date.now() - ctimeMs > CLOCK_STEP_MS;
    for (let length = -1; length !== 0;) {
      length = readSync(file, piece, 0, piece.length, null);
      if (look(piece.subarray(0, length))) mayBeSkipped = false;
    }
    if (mayBeSkipped) inspected.set(path, state);
  } finally {
    closeSync(file);
  }
}
