/**
 * The backend `file`: appends events to a file, one line each, as they are in the stream.
 *
 * Acknowledged events are on disk. Other programs may rename, remove or truncate the file at any time. So the file is looked up by its name before
 * each batch, and a batch that was written to a file that was removed meanwhile is written again.
 */
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConcurrencyLimit } from '../../core/concurrency-limit.js';
import type { Backend, CreateBackend, Delivery, DeliveryResult } from './backend.js';

const NEWLINE = 10;
const MAX_TRIES = 3;

export const createBackend: CreateBackend = ({ endpoint }) => new FileBackend(endpoint);

export class FileBackend implements Backend {
  readonly batch = { maxEvents: 500, maxBytes: 8 * 1024 * 1024 };
  readonly #path: string;
  #file: FileHandle | null = null;
  /** Operations on the file run one after the other. */
  readonly #turns = new ConcurrencyLimit(1);

  constructor(path: string) {
    this.#path = path;
  }

  deliver(deliveries: readonly Delivery[]): Promise<DeliveryResult[]> {
    const lines = Buffer.from(deliveries.map(({ json }) => `${json}\n`).join(''));
    return this.#turns.run(async () => {
      const result = await this.#append(lines);
      return Array<DeliveryResult>(deliveries.length).fill(result);
    });
  }

  reopen(): Promise<void> {
    return this.#turns.run(() => this.#close());
  }

  close(): Promise<void> {
    return this.#turns.run(() => this.#close());
  }

  async #append(lines: Buffer): Promise<DeliveryResult> {
    try {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const file = await this.#current();
        await writeWhole(file, lines);
        if (await isLinked(file)) return { kind: 'delivered' };
        await this.#close();
      }
      return { kind: 'retry', why: 'the file is removed after each write' };
    } catch (error) {
      await this.#close(); // Reopening ends an incomplete last line.
      return { kind: 'retry', why: `cannot write the file (${codeOf(error)})` };
    }
  }

  /** The open file. Reopens it if another file has its name now. */
  async #current(): Promise<FileHandle> {
    if (this.#file && !(await isAt(this.#path, this.#file))) await this.#close();
    return (this.#file ??= await openToAppend(this.#path));
  }

  async #close(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close().catch(() => undefined);
  }
}

async function openToAppend(path: string): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, 'a+', 0o600);
  try {
    const { size } = await file.stat();
    if (size === 0) await syncFolder(dirname(path));
    else await endTornLine(file, size);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** A process that was killed may have left an incomplete line. The line stays, and new events start on the next one. */
async function endTornLine(file: FileHandle, size: number): Promise<void> {
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  if (buffer[0] !== NEWLINE) await file.write('\n');
}

/** The name of a new file is on disk only after its folder is synced. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  await folder.sync().finally(() => folder.close());
}

/** @throws if not all lines could be written, after removing those that were, if possible. */
async function writeWhole(file: FileHandle, lines: Buffer): Promise<void> {
  const before = await file.stat();
  let written = 0;
  try {
    while (written < lines.length) written += (await file.write(lines, written)).bytesWritten;
    // A device or a pipe cannot be synced.
    if (before.isFile()) await file.datasync();
  } catch (error) {
    const { size } = await file.stat();
    if (before.isFile() && size === before.size + written) await file.truncate(before.size).catch(() => undefined);
    throw error;
  }
}

const isLinked = async (file: FileHandle): Promise<boolean> => (await file.stat()).nlink > 0;

async function isAt(path: string, file: FileHandle): Promise<boolean> {
  const [there, here] = await Promise.all([stat(path).catch(() => null), file.stat()]);
  return there !== null && there.ino === here.ino && there.dev === here.dev;
}

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : 'failed';
}
