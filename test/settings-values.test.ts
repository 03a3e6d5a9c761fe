import { expect } from 'chai';
import { loadSettings, type Settings, SettingsError } from '../config/settings.js';

const MANAGEMENT_TOKEN = 'a-management-token-of-some-length';

function problemsWith(name: string, text: string): readonly string[] {
  try {
    loadSettings({ MANAGEMENT_TOKEN, [name]: text });
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  throw new Error('the setting was accepted');
}

interface Table {
  name: string;
  key: keyof Settings;
  accepted: Record<string, unknown>;
  refused: string[];
}

const tables: Record<string, Table> = {
  sizes: {
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
    ],
  },
  databases: {
    name: 'DATABASE_URL',
    key: 'databasePath',
    accepted: {
      'sqlite:./data/llmp.db': './data/llmp.db',
      'sqlite:///var/lib/llmp.db': '/var/lib/llmp.db',
      '/var/lib/llmp.db': '/var/lib/llmp.db',
      'llmp.db': 'llmp.db',
    },
    refused: [
      '',
      'sqlite:',
      ':memory:',
      'sqlite::memory:',
      'postgres://host/db',
      'mysql://host/db',
      'sqlite://data/llmp.db',
    ],
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
for (const [what, { name, key, accepted, refused }] of Object.entries(tables)) {
  describe(`settings that are ${what}, such as ${name},`, () => {
    for (const [text, value] of Object.entries(accepted)) {
      it(`take ${text}`, () => {
        expect(loadSettings({ MANAGEMENT_TOKEN, [name]: text }).settings[key]).to.deep.equal(value);
      });
    }
    for (const text of refused) {
      it(`refuse ${JSON.stringify(text)}, naming ${name}`, () => {
        const problems = problemsWith(name, text);
        expect(problems).to.have.length(1);
        expect(problems[0]).to.match(new RegExp(`^${name} must be `));
      });
    }
  });
}
