/** The tests that run in process, as far as the oldest or the newest supported release of Node.js may change their results. */
const { versions } = require('node:process');
const { ring } = require('./ring.cjs');

const [major] = versions.node.split('.');
module.exports = ring('.test.js', ['faults/l-delivery', 'http/manage/', 'store/'], Number(major));
