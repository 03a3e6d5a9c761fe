/**
 * `npm run test:workers`: the tests of caps, kills, revocation, cache and limits once more, with three workers (test/support/test-workers.ts). Daemons in
 * the process of a test have them in that process too, on the clock of the test; other daemons have them as processes.
 */
const { availableParallelism } = require('node:os');
const { env } = require('node:process');

env.LLMP_TEST_WORKERS ??= '3';

/** A minute of them, which test/process/workers-suites.system.ts runs with LLMP_TEST_QUICK. */
const QUICK = [
  'core/rate-limits.test',
  'core/token-states.test',
  'faults/f-tokens.test',
  'faults/g-coalescing.test',
  'faults/g-purge.test',
];

const FILES = [
  ...QUICK,
  'core/events.test',
  'core/failures-agree.test',
  'core/model-names.test',
  'core/reads.test',
  'core/realtime.test',
  'core/records-agree.test',
  'faults/d-clients.test',
  'faults/e-limits.test',
  'faults/e-rates.test',
  'faults/e-shared-rates.test',
  'faults/g-complete.test',
  'faults/g-keys.test',
  'faults/g-redis.test',
  'faults/g-requests.test',
  'faults/g-rfc.test',
  'faults/g-stored.test',
  'http/manage/cache-management.test',
  'http/manage/incidents.test',
  'http/proxy/bodies.test',
  'http/proxy/cors.test',
  'http/proxy/cut-streams.test',
  'http/proxy/errors.test',
  'http/proxy/forwarding.test',
  'http/proxy/limits.test',
  'http/proxy/openai.test',
  'http/proxy/slow-readers.test',
  'http/proxy/streaming.test',
  'http/proxy/trusted-proxies.test',
  'http/server/management-listener.test',
  'http/server/through-primary.test',
  'store/kill.system',
];

module.exports = {
  ...require('../.mocharc.json'),
  parallel: true,
  jobs: availableParallelism(),
  spec: (env.LLMP_TEST_QUICK ? QUICK : FILES).map((file) => `dist/test/${file}.js`),
};
