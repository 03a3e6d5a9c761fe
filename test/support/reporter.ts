/**
 * Mocha's Spec reporter, with source lines in stacks. It also notes failures: if FAILED_TESTS names a file, each failure appends one line
 * to it: the test's file, a tab, its title, a colon and the first line of its error. The file is `-` for a failure that belongs to no test
 * file, such as one of the scan for leaked secrets. `.ci/run` runs these files again and lists the failures.
 */
import Mocha from 'mocha';
import { appendFileSync } from 'node:fs';
import { mapToSource } from './source-lines.js';

/** The first line of an error, cut at 300 characters. */
function firstLine(error: unknown): string {
  // An error from another process arrives as a plain object.
  const text = (error as { message?: string } | undefined)?.message ?? String(error);
  return (text.trim().split('\n')[0] ?? '').slice(0, 300);
}

export default class Reporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    runner.on(Mocha.Runner.constants.EVENT_TEST_FAIL, (_test, error: unknown) => {
      if (error instanceof Error && error.stack !== undefined) error.stack = mapToSource(error.stack);
    });
    const path = process.env.FAILED_TESTS;
    if (path === undefined) return;
    runner.on(Mocha.Runner.constants.EVENT_TEST_FAIL, (test: Mocha.Test | Mocha.Hook, error: unknown) => {
      const file = test.file ?? test.ctx?.currentTest?.file ?? '-';
      appendFileSync(path, `${file}\t${test.fullTitle().replace(/\s+/g, ' ')}: ${firstLine(error)}\n`);
    });
  }
}
