/**
 * Says what Spec says, and writes the files of what failed, a line each, to FAILED_FILES if that is set: for whoever runs
 * them once more. What failed in no file of tests, such as the scan for leaks, is `-`.
 */
import Mocha from 'mocha';
import { appendFileSync } from 'node:fs';

export default class Reporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const path = process.env.FAILED_FILES;
    if (path === undefined) return;
    runner.on(Mocha.Runner.constants.EVENT_TEST_FAIL, (test: Mocha.Test | Mocha.Hook) => {
      appendFileSync(path, `${test.file ?? test.ctx?.currentTest?.file ?? '-'}\n`);
    });
  }
}
