/** Runs an attack for a test, in a process of its own, so that what the test process does is not measured. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { rowOf } from './report.js';
import type { SceneResult } from './scene.js';

const MAIN = join(import.meta.dirname, 'main.js');
const LONGEST_MS = 90_000;

/** @param args of main.ts, separated by blanks. Prints the result as a row of the table. */
export async function resultOf(args: string): Promise<SceneResult> {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args.split(' '), '--json'], {
    timeout: LONGEST_MS,
    maxBuffer: 16 * 1024 * 1024,
  });
  const result = JSON.parse(stdout) as SceneResult;
  console.log(`      ${rowOf(args, result)}`);
  return result;
}
