/** `npm test`: the tests that run in process. */
const { ring } = require('./ring.cjs');

module.exports = ring('.test.js', [
  'faults/l-delivery',
  'core/admission.model',
  'tui/screens/sizes',
  'http/manage/',
  'core/',
  'store/',
]);
