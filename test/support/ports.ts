/** Ports for programs that cannot be told to take any free one, and for what nobody is to listen on. */
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Below those that the kernel gives to whoever asks for any.
const LOWEST = 20_000;
const COUNT = 10_000;
/** A file for each port that is claimed, which holds the id of the process that claimed it. All test processes of the machine share them. */
const CLAIMS = join(tmpdir(), 'llmp-test-ports');

/**
 * A port of 127.0.0.1 on which nobody listens, and which no test process but this one is given while it lives.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * COUNT);
    if (claim(port) && (await isFree(port))) return port;
  }
}

/** @returns false when a process that lives has claimed it. */
function claim(port: number): boolean {
  mkdirSync(CLAIMS, { recursive: true });
  const path = join(CLAIMS, String(port));
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    // What a process left that is gone is given to the next who asks, by chance: two must not take it over at once.
    if (!isAlive(ownerOf(path))) rmSync(path, { force: true });
    return false;
  }
}

function ownerOf(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8'));
  } catch {
    return process.pid; // Just taken away by another process.
  }
}

function isAlive(pid: number): boolean {
  if (pid === 0) return true; // Its owner is about to write it.
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
