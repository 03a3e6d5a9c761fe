/** The tests that run in process, as far as a newer release of Node.js than the oldest supported one may change what they come to. */
const { versions } = require('node:process');
const { ring } = require('./ring.cjs');

const [major] = versions.node.split('.');
module.exports = ring('.test.js', ['faults/l-delivery', 'http/manage/', 'store/'], Number(major));
