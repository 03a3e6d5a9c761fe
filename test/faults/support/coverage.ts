import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { allIds, idsAtFront } from '../matrix.js';

const ROOT = join(import.meta.dirname, '../../../..');

export interface Coverage {
  id: string;
  /** Titles of the tests that cover the row. */
  tests: string[];
  /** The reason why it has no test, from README.md. */
  reason: string | null;
}

/** Asks mocha for the titles of all tests, including the long ones, without running them. */
async function titles(): Promise<string[]> {
  const mocha = join(ROOT, 'node_modules/mocha/bin/mocha.js');
  const files = 'dist/test/**/*.{test,system,measured,long}.js';
  const { stdout } = await promisify(execFile)(process.execPath, [mocha, '--dry-run', '--reporter', 'json', files], {
    cwd: ROOT,
    maxBuffer: 64 * 1024 * 1024,
  });
  const report = JSON.parse(stdout.slice(stdout.indexOf('{'))) as { tests: { title: string }[] };
  return report.tests.map(({ title }) => title);
}

/** Reads lines such as `- A28, A29: reason`. */
function reasons(): Map<string, string> {
  const lines = readFileSync(join(ROOT, 'test/faults/README.md'), 'utf8').split('\n');
  return new Map(
    lines
      .filter((line) => line.startsWith('- '))
      .flatMap((line) => idsAtFront(line.slice(2)).map((id): [string, string] => [id, line.replace(/^- [^:]*: /, '')])),
  );
}

export async function whatCovers(): Promise<Coverage[]> {
  const all = await titles();
  const why = reasons();
  return allIds().map((id) => ({
    id,
    tests: all.filter((title) => idsAtFront(title).includes(id)),
    reason: why.get(id) ?? null,
  }));
}

export const uncovered = (coverage: readonly Coverage[]): string[] =>
  coverage.filter(({ tests, reason }) => tests.length === 0 && reason === null).map(({ id }) => id);
