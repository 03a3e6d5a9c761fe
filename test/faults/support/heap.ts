import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

function collect(): void {
  setFlagsFromString('--expose-gc');
  const collectAll = runInNewContext('gc') as () => void;
  collectAll();
  collectAll(); // What buffers held the first one only begins to give back.
}

/** What this process holds once its garbage is thrown away, in bytes. */
export function heapAfterCollection(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

/** The same, with what its buffers hold beside the heap. */
export function heldAfterCollection(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
