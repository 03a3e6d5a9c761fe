/**
 * Loaded into each process of an attacked daemon: writes the size of its heap, and the largest so far, to a file named after its process ID. The
 * query of this module's URL has the folder.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const EVERY_MS = 200;

export interface HeapSize {
  heapMb: number;
  peakHeapMb: number;
  externalMb: number;
  peakExternalMb: number;
}

const folder = new URL(import.meta.url).searchParams.get('folder');
if (folder !== null) {
  const size: HeapSize = { heapMb: 0, peakHeapMb: 0, externalMb: 0, peakExternalMb: 0 };
  setInterval(() => {
    const { heapUsed, external } = process.memoryUsage();
    size.heapMb = heapUsed / 1e6;
    size.externalMb = external / 1e6;
    size.peakHeapMb = Math.max(size.peakHeapMb, size.heapMb);
    size.peakExternalMb = Math.max(size.peakExternalMb, size.externalMb);
    writeFileSync(join(folder, String(process.pid)), JSON.stringify(size));
  }, EVERY_MS).unref();
}
