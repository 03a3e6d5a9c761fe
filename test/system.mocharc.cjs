/** `npm run test:system`: the tests with processes, servers that are stopped, a browser or a terminal. They wait more than they compute. */
const { ring } = require('./ring.cjs');

module.exports = ring('.system.js', [
  'house/fresh-clone',
  'store/database-outage',
  'faults/f-instances',
  'admin/browser',
  'tui/',
  'store/',
]);
