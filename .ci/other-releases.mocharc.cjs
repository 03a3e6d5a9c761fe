/**
 * What is run once more under the newer releases of Node: the tests whose result can depend on the release. Everything else (state and
 * keys of the terminal UI, settings, SQL, pages of the Admin UI, vendors of the dispatcher, documents, models with many seeds) runs under
 * the oldest release alone, where the whole suite runs.
 *
 * Not here although they use all of it, because they take minutes of servers that stand still and processes that are killed:
 * database-outage, daemon-before-database, faults/f-*, faults/j-servers.
 */
const what = {
  'the HTTP server: parsing, limits, time-outs, connections': [
    'faults/a-*',
    'faults/d-*',
    'faults/e-limits',
    'faults/e-timeouts',
    'faults/h-authentication',
    'bodies',
    'management-listener',
    'probes',
    'proxy*',
    'slow-readers',
    'trusted-proxies',
  ],
  'the HTTP client and streams': [
    'faults/b-*',
    'faults/c-*',
    'faults/g-whole',
    'forwarding',
    'streaming',
    'openai',
    'event-streams',
    'audit-stream',
    'cli/connection',
  ],
  'upgrades and WebSocket': ['faults/upgrades', 'websocket'],
  'sockets and TLS to servers': ['redis-connection', 'stores/server-connections', 'faults/k-redis'],
  'processes, signals and the heap guard': [
    'daemon-process',
    'failed-start',
    'kill',
    'content-memory',
    'faults/g-pressure',
    'faults/i-process',
    'faults/m-process',
    'faults/r-*',
    'cli/process',
    'cli/run',
    'cli/scripts',
    'log',
    'reload',
    'systemd/*',
  ],
  terminals: ['tui/program', 'tui/terminal/*', 'cli/init-wizard'],
  'the SQLite addon': ['backup', 'faults/j-sqlite', 'stores/migrations'],
  'loading of the program': ['cli/loading', 'dispatcher', 'shape'],
};

module.exports = {
  ...require('../.mocharc.json'),
  spec: Object.values(what).flatMap((names) => names.map((name) => `dist/test/${name}.test.js`)),
};
