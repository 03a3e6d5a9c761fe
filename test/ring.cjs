/** How the rings of tests that run in several processes are put together (quick.mocharc.cjs, system.mocharc.cjs). */
const { readdirSync } = require('node:fs');
const { availableParallelism } = require('node:os');
const { join } = require('node:path');

const FOLDER = join(__dirname, '../dist/test');
/** Rings of their own. */
const APART = /^(?:deployments|sdks|clients)\//;

/**
 * @param ending of the files, such as `.test.js`.
 * @param longest the files, or folders, that take longest. They come first: none of them is to be left alone at the end.
 * @returns a configuration of mocha.
 */
exports.ring = (ending, longest) => {
  const rank = (file) => {
    const at = longest.findIndex((beginning) => file.startsWith(beginning));
    return at === -1 ? longest.length : at;
  };
  return {
    ...require('../.mocharc.json'),
    parallel: true,
    // One more than there are processors: a test that waits leaves its processor to another.
    jobs: availableParallelism() + 1,
    spec: readdirSync(FOLDER, { recursive: true })
      .filter((file) => file.endsWith(ending) && !APART.test(file))
      .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
      .map((file) => `dist/test/${file}`),
  };
};
