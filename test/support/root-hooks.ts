/** Loaded before all tests: the scan for leaks sees the whole suite, and fails it when it found one. */
import { misfitsFound } from './inspected-events.js';
import { found, inspectFolders, inspectOwnOutput, inspectProcesses, testBegins } from './leaks.js';

inspectProcesses();
inspectOwnOutput();

export const mochaHooks: Mocha.RootHookObject = {
  beforeEach(this: Mocha.Context) {
    testBegins(this.currentTest?.fullTitle() ?? '');
  },
  afterAll() {
    testBegins('after the last test');
    inspectFolders();
    const leaks = found().map(({ sink, secret, test }) => `${sink}: ${secret}, in "${test}"`);
    if (misfitsFound().length > 0) throw new Error(`events are not as described:\n${misfitsFound().join('\n')}`);
    if (leaks.length > 0) throw new Error(`secrets leaked:\n${leaks.join('\n')}`);
  },
};
