/** `npm test`: the tests that run in process. */
const { inMemory, ring } = require('./ring.cjs');

inMemory();

module.exports = ring('.test.js', [
  'faults/l-delivery',
  'core/admission.model',
  'tui/screens/sizes',
  'http/manage/',
  'core/',
  'store/',
]);
