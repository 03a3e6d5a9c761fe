/** Ports for programs that cannot use any free one, and for addresses on which nothing may listen. */
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Below the ports that the kernel assigns itself.
const LOWEST = 20_000;
const COUNT = 10_000;
/** A file for each claimed port, with the ID of the process that claimed it. All test processes of the machine share them. */
const CLAIMS = join(tmpdir(), 'llmp-test-ports');

/** A port of 127.0.0.1 on which nothing listens, and which no other test process gets while this one lives. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * COUNT);
    if (claim(port) && (await isFree(port))) return port;
  }
}

/** @returns false if a live process has claimed it. */
function claim(port: number): boolean {
  mkdirSync(CLAIMS, { recursive: true });
  const path = join(CLAIMS, String(port));
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    // A claim of a process that has ended is removed and given away later, at random, because two processes must not take it over at once.
    if (!isAlive(ownerOf(path))) rmSync(path, { force: true });
    return false;
  }
}

function ownerOf(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8'));
  } catch {
    return process.pid; // Another process has just removed it.
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
