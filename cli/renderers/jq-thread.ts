/** The thread that evaluates the program of `--jq`, its data, on each message. See jq.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { loadJq } from 'jq-wasm';

export interface JqResult {
  stdout: string;
  stderr: string;
  exitCode: number;
}

// `--` ends the options: a program that starts with - must not be taken for one.
const FLAGS = ['-c', '--'];

const jq = await loadJq();
parentPort?.on('message', (input: string) => {
  parentPort?.postMessage(evaluated(input));
});

/** @returns null if WebAssembly ended the program, because it needs more than its memory, or recurses too deeply. */
function evaluated(input: string): JqResult | null {
  try {
    return jq.raw(input, workerData as string, FLAGS);
  } catch {
    return null;
  }
}
