/**
 * Loaded before all tests, in each process that runs some: the scan for leaks sees the whole suite. What it found fails the run; where mocha
 * runs files in several processes, it fails the file in which it was found.
 */
import { takeMisfits } from './inspected-events.js';
import { inspectFolders, inspectOwnOutput, inspectProcesses, takeFound, testBegins } from './leaks.js';

inspectProcesses();
inspectOwnOutput();

export const mochaHooks: Mocha.RootHookObject = {
  beforeEach(this: Mocha.Context) {
    testBegins(this.currentTest?.fullTitle() ?? '');
  },
  afterAll() {
    testBegins('after the last test');
    inspectFolders();
    const misfits = takeMisfits();
    const leaks = takeFound().map(({ sink, secret, test }) => `${sink}: ${secret}, in "${test}"`);
    if (misfits.length > 0) throw new Error(`events are not as described:\n${misfits.join('\n')}`);
    if (leaks.length > 0) throw new Error(`secrets leaked:\n${leaks.join('\n')}`);
  },
};
