/** `npm run test:system`, its first part: the tests with processes, servers that are stopped, a browser or a terminal. They wait more than they compute. */
const { availableParallelism } = require('node:os');
const { ring } = require('./ring.cjs');

const LONGEST = ['store/database-outage', 'faults/f-instances', 'admin/browser', 'tui/', 'store/'];

module.exports = ring('.system.js', LONGEST, availableParallelism() + 1);
