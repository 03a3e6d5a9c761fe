import { expect } from 'chai';
import { type AllSettings, type Environment, loadSettings } from '../../config/settings.js';
import { MANAGEMENT_TOKEN, problemsWith } from '../support/settings.js';

interface Table {
  /** The row of the fault matrix (test/faults.md) that it tests. */
  row?: string;
  name: string;
  key: keyof AllSettings;
  /** Settings that it requires. */
  required?: Environment;
  accepted: Record<string, unknown>;
  refused: string[];
}

const tables: Record<string, Table> = {
  sizes: {
    row: 'E04',
    name: 'MAX_REQUEST_SIZE',
    key: 'maxRequestBytes',
    accepted: {
      '50MB': 50e6,
      '50mb': 50e6,
      '10KB': 10e3,
      '2GB': 2e9,
      '50MiB': 50 * 2 ** 20,
      '10kib': 10 * 2 ** 10,
      '2GiB': 2 * 2 ** 30,
    },
    refused: [
      '',
      '0',
      '0MB',
      '50',
      '50M',
      '50 MB',
      ' 50MB',
      '50MB\n',
      '-1',
      '-1MB',
      '1.5MB',
      '1e3',
      '1e3MB',
      'abc',
      'NaN',
      'MB',
      '50B',
      '0x10MB',
      '999999999999GB',
      '5TB',
    ],
  },
  durations: {
    row: 'E05',
    name: 'REQUEST_TIMEOUT',
    key: 'requestTimeoutMs',
    accepted: {
      '500ms': 500,
      '120s': 120_000,
      '2m': 120_000,
      '1h': 3_600_000,
      '596h': 596 * 3_600_000,
      '2147483647ms': 2 ** 31 - 1,
    },
    refused: [
      '',
      '0',
      '0s',
      '120',
      '-1s',
      '1.5s',
      '1e3s',
      '9999h',
      '597h',
      '2147483648ms',
      '2 m',
      '1d',
      '1h30m',
      's',
      'forever',
      '120s\n',
    ],
  },
  'durations that may be 0': {
    name: 'SHUTDOWN_DELAY',
    key: 'shutdownDelayMs',
    accepted: { '0': 0, '1s': 1_000 },
    refused: ['', '00', '-0', '0s', 'off'],
  },
  addresses: {
    name: 'LISTEN_ADDR',
    key: 'listenAddress',
    accepted: {
      '127.0.0.1:8080': { host: '127.0.0.1', port: 8080 },
      'localhost:0': { host: 'localhost', port: 0 },
      '[::]:8080': { host: '::', port: 8080 },
      '[::1]:65535': { host: '::1', port: 65535 },
      ':8080': { host: '::', port: 8080 },
      'unix:/run/llmp/llmp.sock': { path: '/run/llmp/llmp.sock' },
    },
    refused: [
      '',
      '8080',
      'localhost',
      'localhost:',
      ':65536',
      '::1:8080',
      '[::1]',
      '[127.0.0.1]:8080',
      '[:::]:8080',
      'http://localhost:8080',
      'localhost:http',
      'local host:80',
      'unix:',
      'unix:relative',
      ':-1',
    ],
  },
  'upstream URLs': {
    name: 'UPSTREAM_BASE_URL',
    key: 'upstreamBaseUrl',
    accepted: {
      'https://api.openai.com': new URL('https://api.openai.com'),
      'http://127.0.0.1:9/base/': new URL('http://127.0.0.1:9/base/'),
      'http://169.253.169.254': new URL('http://169.253.169.254'),
      'http://[fec0::1]': new URL('http://[fec0::1]'),
      'https://metadata.example': new URL('https://metadata.example'),
    },
    refused: [
      '',
      'api.openai.com',
      'ftp://x',
      'file:///etc/passwd',
      'https://',
      'https://x?y',
      'https://x/#y',
      'https://x?',
      'https://x#',
      'https://me@x',
      ' https://x',
      'http://169.254.169.254',
      'http://169.254.0.1/v1',
      'http://2852039166', // 169.254.169.254 in other clothes
      'http://0xa9.0xfe.0xa9.0xfe',
      'http://[::ffff:169.254.169.254]',
      'http://[fe80::1]',
      'http://[febf::1]',
      'http://[fd00:ec2::254]',
      'http://100.100.100.200',
      'http://metadata',
      'http://METADATA.google.internal',
      'http://metadata.google.internal.',
      'http://instance-data.ec2.internal',
    ],
  },
  databases: {
    row: 'M13',
    name: 'DATABASE_URL',
    key: 'database',
    accepted: {
      'sqlite:./data/llmp.db': { driver: 'sqlite', path: './data/llmp.db' },
      'sqlite:///var/lib/llmp.db': { driver: 'sqlite', path: '/var/lib/llmp.db' },
      '/var/lib/llmp.db': { driver: 'sqlite', path: '/var/lib/llmp.db' },
      'llmp.db': { driver: 'sqlite', path: 'llmp.db' },
    },
    refused: ['', 'sqlite:', ':memory:', 'sqlite::memory:', 'sqlite://data/llmp.db'],
  },
  'drivers of databases': {
    row: 'M13',
    name: 'DB_DRIVER',
    key: 'databaseDriver',
    accepted: { sqlite: 'sqlite' },
    refused: ['', 'mssql'],
  },
  'yes or no': {
    name: 'AUTO_MIGRATE',
    key: 'autoMigrate',
    accepted: { true: true, false: false },
    refused: ['', 'TRUE', 'yes', '1', '0', 'on', ' true'],
  },
  numbers: {
    name: 'UPSTREAM_CONNECTIONS',
    key: 'upstreamConnections',
    accepted: { '1': 1, '65535': 65535 },
    refused: ['', '0', '65536', '-1', '1.5', '1e3', '0x10', ' 1', 'many', '9999999999999999'],
  },
  'numbers that may be 0': {
    name: 'GLOBAL_RATE_LIMIT',
    key: 'globalRateLimit',
    accepted: { '0': 0, '1000': 1000 },
    refused: ['', '-1', '10/s', 'off'],
  },
  'periods that drive no timer': {
    name: 'USAGE_RETENTION',
    key: 'usageRetentionMs',
    accepted: { '0': 0, '8760h': 8760 * 3_600_000, '876000h': 876_000 * 3_600_000 },
    refused: ['', '0h', '365d', '876001h', '-1h'],
  },
  'servers to connect to': {
    row: 'K16',
    name: 'REDIS_ADDR',
    key: 'redisAddress',
    accepted: {
      'localhost:6379': { host: 'localhost', port: 6379 },
      '10.0.0.1:6379': { host: '10.0.0.1', port: 6379 },
      '[2001:db8::1]:6379': { host: '2001:db8::1', port: 6379 },
    },
    refused: [
      '',
      'localhost',
      ':6379',
      'localhost:0',
      'localhost:65536',
      '2001:db8::1:6379',
      '2001:db8::1',
      'redis://localhost:6379',
      'redis://me:hidden@localhost:6379/0',
      'unix:/run/redis.sock',
      'local host:6379',
    ],
  },
  'databases of Redis': {
    row: 'K16',
    name: 'REDIS_DB',
    key: 'redisDatabase',
    accepted: { '0': 0, '15': 15 },
    refused: ['', '16', '99', '-1', 'db0'],
  },
  words: {
    name: 'REDIS_USERNAME',
    key: 'redisUsername',
    accepted: { me: 'me', 'ein Wort für sich': 'ein Wort für sich' },
    refused: ['', 'me\n', '\u001b[31m'],
  },
  networks: {
    name: 'TRUSTED_PROXIES',
    key: 'trustedProxies',
    accepted: {
      '10.0.0.0/8': [{ address: '10.0.0.0', prefix: 8, family: 'ipv4' }],
      '127.0.0.1, ::1': [
        { address: '127.0.0.1', prefix: 32, family: 'ipv4' },
        { address: '::1', prefix: 128, family: 'ipv6' },
      ],
      '2001:db8::/32': [{ address: '2001:db8::', prefix: 32, family: 'ipv6' }],
    },
    refused: [
      '',
      ',',
      '10.0.0.0/8,',
      '10.0.0.0/33',
      '::/129',
      '10.0.0/8',
      '10.0.0.0/',
      '10.0.0.0/08',
      '10.0.0.0/8/8',
      'fe80::1%eth0',
      'proxy.example',
      '10.0.0.0/8 10.1.0.0/16',
      '*',
    ],
  },
  issuer: {
    name: 'OIDC_ISSUER',
    key: 'oidcIssuer',
    required: {
      OIDC_CLIENT_ID: 'llmp',
      OIDC_CLIENT_SECRET: 'a secret',
      OIDC_ROLES: '/etc/llmp/roles.json',
      PUBLIC_URL: 'https://llmp.example.com',
    },
    accepted: {
      'https://login.example.com': 'https://login.example.com',
      'https://login.example.com/realms/company/': 'https://login.example.com/realms/company/',
      'http://127.0.0.1:9000': 'http://127.0.0.1:9000',
      'http://localhost/issuer': 'http://localhost/issuer',
    },
    refused: [
      '',
      'login.example.com',
      'http://login.example.com',
      'https://user:password@login.example.com',
      'https://login.example.com/?tenant=1',
      'https://login.example.com/#',
      'https://169.254.169.254/',
    ],
  },
  'public URL': {
    name: 'PUBLIC_URL',
    key: 'publicUrl',
    accepted: {
      'https://llmp.example.com': new URL('https://llmp.example.com'),
      'http://localhost:8080': new URL('http://localhost:8080'),
    },
    refused: ['', 'llmp.example.com', 'http://llmp.example.com', 'https://llmp.example.com/admin/'],
  },
  origins: {
    name: 'CORS_ALLOWED_ORIGINS',
    key: 'corsAllowedOrigins',
    accepted: {
      'https://app.example': ['https://app.example'],
      'https://app.example,http://localhost:3000': ['https://app.example', 'http://localhost:3000'],
      'http://[::1]:3000': ['http://[::1]:3000'],
    },
    refused: [
      '',
      '*',
      'https://*.example',
      'null',
      'app.example',
      'https://app.example/',
      'https://app.example/path',
      'https://APP.example',
      'https://app.example:443',
      'https://me@app.example',
      'ftp://app.example',
      'https://app.example,',
      'https://app.example,*',
    ],
  },
  'paths of answers': {
    name: 'HTTP_CACHE_DEFAULT_TTL_PATHS',
    key: 'httpCacheDefaultTtlPaths',
    accepted: { '*': ['*'], '/v1/models,/v1/files/*': ['/v1/models', '/v1/files/*'], '/v1/*': ['/v1/*'] },
    refused: ['', 'v1/models', '/v1/*/models', '/v1/models?x', '**', '/v1*'],
  },
  'paths of a page': {
    name: 'METRICS_PATH',
    key: 'metricsPath',
    accepted: { '/metrics': '/metrics', '/ops/metrics': '/ops/metrics', '/v10': '/v10', '/livestock': '/livestock' },
    refused: ['', '/', 'metrics', '/metrics/', '//metrics', '/a//b', '/../v1', '/a/..', '/.', '/m%65', '/m?x', '/m x'],
  },
  'paths of pages': {
    row: 'P12',
    name: 'ADMIN_UI_PATH',
    key: 'adminUiPath',
    accepted: { '/admin/': '/admin/', '/ops/admin': '/ops/admin/' },
    refused: ['', '/', '//', 'admin', '/admin//', '/./', '/a/../b/', '/admin?x'],
  },
  'files or none': {
    name: 'AUDIT_LOG_FILE',
    key: 'auditLogFile',
    accepted: { '': null, 'audit.log': 'audit.log', '/var/log/llmp/audit.log': '/var/log/llmp/audit.log' },
    refused: ['/var/log/', 'a\nb', 'a\0b'],
  },
  'files or URLs': {
    name: 'DISPATCHER_ENDPOINT',
    key: 'dispatcherEndpoint',
    accepted: { 'events.jsonl': 'events.jsonl', '/var/log/llmp/events.jsonl': '/var/log/llmp/events.jsonl' },
    refused: ['', '/var/log/', 'ftp://x/y', 'https://', 'mailto:me'],
  },
  choices: {
    name: 'LOG_FORMAT',
    key: 'logFormat',
    accepted: { json: 'json', text: 'text' },
    refused: ['', 'JSON', 'pretty'],
  },
  'encryption keys': {
    name: 'ENCRYPTION_KEY',
    key: 'encryptionKey',
    accepted: { [Buffer.alloc(32, 7).toString('base64')]: Buffer.alloc(32, 7) },
    refused: [
      '',
      'short',
      Buffer.alloc(31, 7).toString('base64'),
      Buffer.alloc(33, 7).toString('base64'),
      Buffer.alloc(32, 7).toString('hex'),
      `${Buffer.alloc(32, 7).toString('base64')} `,
    ],
  },
};
for (const [what, { row, name, key, required, accepted, refused }] of Object.entries(tables)) {
  describe(`settings that are ${what}, such as ${name},`, () => {
    const id = row === undefined ? '' : `${row} `;
    for (const [text, value] of Object.entries(accepted)) {
      it(`${id}take ${text}`, () => {
        const { settings, reloadable } = loadSettings({ MANAGEMENT_TOKEN, ...required, [name]: text });
        expect({ ...settings, ...reloadable }[key]).to.deep.equal(value);
      });
    }
    for (const text of refused) {
      it(`${id}refuse ${JSON.stringify(text)}, naming ${name}`, () => {
        const problems = problemsWith({ ...required, [name]: text });
        expect(problems).to.have.length(1);
        expect(problems[0]).to.match(new RegExp(`^${name} must be `));
      });
    }
  });
}
