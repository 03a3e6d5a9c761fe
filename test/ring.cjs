/** How the rings of tests that run in several processes are put together (quick.mocharc.cjs, system.mocharc.cjs). */
const { readdirSync } = require('node:fs');
const { availableParallelism } = require('node:os');
const { join } = require('node:path');

const FOLDER = join(__dirname, '../dist/test');
/** Rings of their own. */
const APART = /^(?:deployments|sdks|clients)\//;

/** What speaks no HTTP of its own, or speaks it as other tests do: a newer release of Node.js is unlikely to change it. */
const HARDLY_OF_THE_PLATFORM = /^(?:cli|config|console|core|house|metrics|tui)\//;

/**
 * What runs on a release of Node.js that is newer than the oldest supported one: all that touches connections, files and databases, and
 * every other file of the rest. Two releases in a row, such as 22 and 24, run all of it together.
 */
const isForNewer = (file, index, major) => !HARDLY_OF_THE_PLATFORM.test(file) || index % 2 === (major / 2) % 2;

/**
 * @param ending of the files, such as `.test.js`.
 * @param longest the files, or folders, that take longest. They come first: none of them is to be left alone at the end.
 * @param major the release of Node.js, if it is a newer one: then a part of the files runs.
 * @returns a configuration of mocha.
 */
exports.ring = (ending, longest, major) => {
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
      .sort()
      .filter((file, index) => major === undefined || isForNewer(file, index, major))
      .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
      .map((file) => `dist/test/${file}`),
  };
};
