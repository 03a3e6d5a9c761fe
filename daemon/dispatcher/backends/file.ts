/**
 * The back end `file`: an event a line, as it lies in the stream.
 *
 * What is acknowledged is on the disk. The file may be renamed, removed or emptied by others at any time: before each batch it is
 * looked up again by its name, and a batch that went into a file that was removed meanwhile is written again.
 */
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Backend, CreateBackend, Delivery, Verdict } from './backend.js';

const NEWLINE = 10;
const MOST_TRIES = 3;

export const createBackend: CreateBackend = ({ endpoint }) => new FileBackend(endpoint);

/** A class, for it has the file that is open and a queue of what is done to it. */
export class FileBackend implements Backend {
  readonly batch = { mostEvents: 500, mostBytes: 8 * 1024 * 1024 };
  readonly #path: string;
  #file: FileHandle | null = null;
  /** Batches, and what else is done to the file, one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  deliver(deliveries: readonly Delivery[]): Promise<Verdict[]> {
    const lines = Buffer.from(deliveries.map(({ json }) => `${json}\n`).join(''));
    return this.#inTurn(async () => {
      const verdict = await this.#append(lines);
      return Array<Verdict>(deliveries.length).fill(verdict);
    });
  }

  reopen(): Promise<void> {
    return this.#inTurn(() => this.#close());
  }

  close(): Promise<void> {
    return this.#inTurn(() => this.#close());
  }

  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(action);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  async #append(lines: Buffer): Promise<Verdict> {
    try {
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        const file = await this.#current();
        await writeWhole(file, lines);
        if (await isKept(file)) return { kind: 'delivered' };
        await this.#close();
      }
      return { kind: 'retry', why: 'the file is removed each time it is written' };
    } catch (error) {
      await this.#close(); // What it ends with is looked at when it is opened again.
      return { kind: 'retry', why: `cannot write the file (${codeOf(error)})` };
    }
  }

  /** The file of that name, opened anew when it is another one by now. */
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

/** Whoever wrote last may have been killed in the middle of a line. It stays, and the next one begins behind it. */
async function endTornLine(file: FileHandle, size: number): Promise<void> {
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  if (buffer[0] !== NEWLINE) await file.write('\n');
}

/** A new file's name is on the disk once its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  await folder.sync().finally(() => folder.close());
}

/** @throws when not all of it could be written; what was is taken back, as far as that is possible. */
async function writeWhole(file: FileHandle, lines: Buffer): Promise<void> {
  const before = await file.stat();
  let written = 0;
  try {
    while (written < lines.length) written += (await file.write(lines, written)).bytesWritten;
    // A device or a pipe has nothing to wait for.
    if (before.isFile()) await file.datasync();
  } catch (error) {
    const { size } = await file.stat();
    if (before.isFile() && size === before.size + written) await file.truncate(before.size).catch(() => undefined);
    throw error;
  }
}

const isKept = async (file: FileHandle): Promise<boolean> => (await file.stat()).nlink > 0;

async function isAt(path: string, file: FileHandle): Promise<boolean> {
  const [there, here] = await Promise.all([stat(path).catch(() => null), file.stat()]);
  return there !== null && there.ino === here.ino && there.dev === here.dev;
}

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : 'failed';
}
