import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

function collect(): void {
  setFlagsFromString('--expose-gc');
  const collectAll = runInNewContext('gc') as () => void;
  collectAll();
  collectAll(); // Memory held by buffers is only freed after the first collection.
}

/** The heap of this process after a garbage collection, in bytes. */
export function heapAfterCollection(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

/** The same, plus what its buffers hold outside the heap. */
export function heldAfterCollection(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
