/**
 * Loaded into each process of an attacked daemon: writes the size of its heap to a file named after its process ID. The query of this module's
 * URL has the folder.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const EVERY_MS = 200;

export interface HeapSize {
  heapMb: number;
  externalMb: number;
}

const folder = new URL(import.meta.url).searchParams.get('folder');
if (folder !== null) {
  setInterval(() => {
    const { heapUsed, external } = process.memoryUsage();
    const size: HeapSize = { heapMb: heapUsed / 1e6, externalMb: external / 1e6 };
    writeFileSync(join(folder, String(process.pid)), JSON.stringify(size));
  }, EVERY_MS).unref();
}
