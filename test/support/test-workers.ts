/** With LLMP_TEST_WORKERS=3 the daemons of all tests have three workers. */

export const TEST_WORKERS = process.env.LLMP_TEST_WORKERS;

/** For a test of something that each process has for itself, or that replaces parts within the only process. */
export const itInOneProcess = TEST_WORKERS === undefined ? it : it.skip;
