/** With LLMP_TEST_WORKERS=3 the daemons of all tests have three workers. */

export const TEST_WORKERS = process.env.LLMP_TEST_WORKERS;

/**
 * For a test of something that each process has for itself, or that replaces parts within the only process. A function, because the benchmarks
 * load this file without Mocha.
 */
export const itInOneProcess = (title: string, run: Mocha.Func | Mocha.AsyncFunc): Mocha.Test =>
  TEST_WORKERS === undefined ? it(title, run) : it.skip(title, run);
