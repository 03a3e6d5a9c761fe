/**
 * Lists the rows of test/faults.md with what covers each: the number of tests, or the reason from README.md. Exits 1 if a row has neither.
 */
import { uncovered, whatCovers } from './support/coverage.js';

const coverage = await whatCovers();
for (const { id, tests, reason } of coverage) {
  console.log(`${id}  ${tests.length > 0 ? `${tests.length} tests` : (reason ?? 'nothing')}`);
}
const missing = uncovered(coverage);
console.log(`${coverage.length - missing.length} of ${coverage.length} rows are covered`);
if (missing.length > 0) process.exitCode = 1;
