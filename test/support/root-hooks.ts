/**
 * Loaded before all tests, in each process that runs some: the scan for leaks sees the whole suite. Its findings fail the run; if mocha
 * runs files in several processes, they fail the file in which they were found.
 */
import { takeMismatches } from './inspected-events.js';
import { inspectFolders, inspectOwnOutput, inspectProcesses, takeLeaks, testBegins } from './leaks.js';
import { skipAfterHooks } from './skipped-suites.js';

inspectProcesses();
inspectOwnOutput();

export const mochaHooks: Mocha.RootHookObject = {
  beforeAll(this: Mocha.Context) {
    skipAfterHooks(this.test!.parent!);
  },
  beforeEach(this: Mocha.Context) {
    testBegins(this.currentTest?.fullTitle() ?? '');
  },
  afterAll() {
    testBegins('after the last test');
    inspectFolders();
    const misfits = takeMismatches();
    const leaks = takeLeaks().map(({ sink, secret, test }) => `${sink}: ${secret}, in "${test}"`);
    if (misfits.length > 0) throw new Error(`events do not match their description:\n${misfits.join('\n')}`);
    if (leaks.length > 0) throw new Error(`secrets leaked:\n${leaks.join('\n')}`);
  },
};
