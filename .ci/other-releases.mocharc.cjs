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
    'http/proxy/bodies',
    'http/server/management-listener',
    'http/server/probes',
    'http/proxy/proxy*',
    'http/proxy/slow-readers',
    'http/proxy/trusted-proxies',
  ],
  'the HTTP client and streams': [
    'faults/b-*',
    'faults/c-*',
    'faults/g-whole',
    'http/proxy/forwarding',
    'http/proxy/streaming',
    'http/proxy/openai',
    'http/manage/event-streams',
    'http/manage/audit-stream',
    'cli/connection',
  ],
  'upgrades and WebSocket': ['faults/upgrades', 'http/proxy/websocket'],
  'sockets and TLS to servers': ['store/redis-connection', 'store/server-connections', 'faults/k-redis'],
  'processes, signals and the heap guard': [
    'process/daemon',
    'process/failed-start',
    'store/kill',
    'core/content-memory',
    'faults/g-pressure',
    'faults/i-process',
    'faults/m-process',
    'faults/r-*',
    'cli/process',
    'cli/run',
    'cli/scripts',
    'process/log',
    'process/reload',
    'systemd/*',
  ],
  terminals: ['tui/program', 'tui/terminal/*', 'cli/init-wizard'],
  'the SQLite addon': ['store/backup', 'faults/j-sqlite', 'store/migrations'],
  'loading of the program': ['cli/loading', 'dispatcher/dispatcher', 'house/shape'],
};

module.exports = {
  ...require('../.mocharc.json'),
  spec: Object.values(what).flatMap((names) => names.map((name) => `dist/test/${name}.test.js`)),
};
