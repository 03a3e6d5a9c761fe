/** How the rings of tests that run in several processes are put together (quick.mocharc.cjs, system.mocharc.cjs). */
const { mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } = require('node:fs');
const { availableParallelism } = require('node:os');
const { join } = require('node:path');
const process = require('node:process');

const FOLDER = join(__dirname, '../dist/test');
/** Rings of their own. */
const APART = /^(?:deployments|sdks|agents|clients)\//;

/** Tests that speak no HTTP, or speak it as other tests do: another release of Node.js is unlikely to change their results. */
const INDEPENDENT_OF_PLATFORM = /^(?:cli|config|console|core|house|metrics|tui)\//;

/** The newest release of Node.js that is supported. */
const NEWEST = 26;

/** Whether a file starts other programs, or skips tests where such a program is missing. */
const needsPrograms = (file) =>
  /\bthis\.skip\(|\bWITHOUT|node:child_process/.test(readFileSync(join(FOLDER, file), 'utf8'));

/**
 * Which files run on another release than the one that runs all. The newest supported release gets every file that touches
 * connections, files or databases, and half of the others; the oldest gets half of all files. Together they run every file. The
 * oldest also gets each file that needs programs: `.ci/run` runs it without any, where such a file must skip its tests and not fail.
 */
const isForOther = (file, index, major) =>
  index % 2 === (major / 2) % 2 || (major === NEWEST ? !INDEPENDENT_OF_PLATFORM.test(file) : needsPrograms(file));

/** More than twice what the temporary files of the quick tests take together. */
const MEMORY_BYTES = 1024 ** 3;

/** @returns a folder in memory with enough space, in which programs can be started; undefined without one. */
function folderInMemory() {
  try {
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .findLast(([, folder]) => folder === '/dev/shm');
    const { bavail, bsize } = statfsSync('/dev/shm');
    return mount[2] === 'tmpfs' && !mount[3].split(',').includes('noexec') && bavail * bsize >= MEMORY_BYTES
      ? '/dev/shm'
      : undefined;
  } catch {
    return undefined; // Not on this system.
  }
}

/**
 * Puts the temporary files of the tests in memory, if possible. They write thousands of databases, and nothing that they test has to
 * survive a loss of power. This process removes what its workers leave: they are killed a second after the last test.
 */
exports.inMemory = () => {
  const memory = folderInMemory();
  if (memory === undefined || process.env.LLMP_TEST_FOLDER !== undefined) return;
  const folder = mkdtempSync(join(memory, 'llmp-tests-'));
  process.env.LLMP_TEST_FOLDER = folder;
  process.once('exit', () => {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
};

/**
 * @param ending of the files, such as `.test.js`.
 * @param longest the files, or folders, that take longest. They come first: none of them is to be left alone at the end.
 * @param major the release of Node.js, if it is not the one that runs all: then a part of the files runs.
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
      .filter((file, index) => major === undefined || isForOther(file, index, major))
      .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
      .map((file) => `dist/test/${file}`),
  };
};
