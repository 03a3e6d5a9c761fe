import { expect } from 'chai';
import { serverAt } from '../../config/database-url.js';
import { describeSettings, type Environment, loadSettings, secretsOf } from '../../config/settings.js';
import { canary, canaryEncryptionKey, secretsIn } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, problemsWith } from '../support/settings.js';

const POSTGRES = { DB_DRIVER: 'postgres', ENCRYPTION_KEY: canaryEncryptionKey() };
const MYSQL = { DB_DRIVER: 'mysql', ENCRYPTION_KEY: canaryEncryptionKey() };
const plain = {
  host: 'db',
  socket: null,
  user: undefined,
  password: undefined,
  database: 'llmp',
  tls: 'disable',
  channelBinding: 'disable',
  rootCertificate: null,
};
const postgres = { ...plain, driver: 'postgres', port: 5432 };
const mysql = { ...plain, driver: 'mysql', port: 3306 };

describe('DATABASE_URL of a server', () => {
  const accepted: Record<string, object> = {
    'postgres://db/llmp': postgres,
    'postgresql://db:6432/llmp': { ...postgres, port: 6432 },
    'mysql://db/llmp': mysql,
    'mariadb://db:65535/llmp': { ...mysql, port: 65535 },
    'postgres://me@db/llmp': { ...postgres, user: 'me' },
    'mysql://me:@db/llmp': { ...mysql, user: 'me', password: '' },
    'mysql://m%40e:p%40%2F%3A%3F%23%25@db/ll%20mp': { ...mysql, user: 'm@e', password: 'p@/:?#%', database: 'll mp' },
    'postgres://[2001:db8::1]/llmp': { ...postgres, host: '2001:db8::1' },
    'postgres://db/llmp?sslmode=disable': postgres,
    'postgres://db/llmp?sslmode=require': { ...postgres, tls: 'require' },
    'postgres://db/llmp?sslmode=verify-full&channel_binding=require': {
      ...postgres,
      tls: 'verify-full',
      channelBinding: 'require',
    },
    'postgres://db/llmp?channel_binding=prefer': { ...postgres, channelBinding: 'prefer' },
    'mysql://db/llmp?sslmode=verify-full': { ...mysql, tls: 'verify-full' },
    'mysql://db/llmp?sslmode=verify-full&sslrootcert=/etc/my%20ca.pem': {
      ...mysql,
      tls: 'verify-full',
      rootCertificate: '/etc/my ca.pem',
    },
    'postgres:///llmp?host=/run/postgresql': { ...postgres, host: '', socket: '/run/postgresql' },
    'postgres://me@:6432/llmp?host=/run/postgresql': {
      ...postgres,
      user: 'me',
      host: '',
      port: 6432,
      socket: '/run/postgresql',
    },
    'mysql://me@/llmp?socket=/run/mysqld/mysqld.sock': {
      ...mysql,
      user: 'me',
      host: '',
      socket: '/run/mysqld/mysqld.sock',
    },
  };
  for (const [url, address] of Object.entries(accepted)) {
    it(`may be ${url}`, () => {
      expect(serverAt(url)).to.deep.equal(address);
      const { driver } = address as { driver: 'postgres' | 'mysql' };
      const { settings } = loadSettings({ MANAGEMENT_TOKEN, ...POSTGRES, DB_DRIVER: driver, DATABASE_URL: url });
      expect(settings.database).to.deep.equal({ driver, url });
    });
  }

  for (const [what, url] of Object.entries({
    'no name': 'postgres://db',
    'an empty name': 'postgres://db/',
    'no host': 'postgres:///llmp',
    'a password without a user': 'postgres://:hidden@db/llmp',
    'a host that is none': 'postgres://d b/llmp',
    'an address that is none': 'postgres://[::1::2]/llmp',
    'several hosts': 'postgres://one,two/llmp',
    'a port that is none': 'postgres://db:0/llmp',
    'a port beyond all': 'postgres://db:65536/llmp',
    'a path': 'postgres://db/llmp/more',
    'a fragment': 'postgres://db/llmp#more',
    'a slash in the password': 'postgres://me:hid/den@db/llmp',
    'an @ in the password': 'postgres://me:hid@den@db/llmp',
    'a password where the port would be': 'postgres://me:hidden/llmp',
    'too few slashes': 'postgres:/me:hidden@db/llmp',
    'no slashes': 'mysql:me:hidden@db/llmp',
    'an unknown parameter': 'postgres://db/llmp?password=hidden',
    'a parameter twice': 'postgres://db/llmp?sslmode=require&sslmode=disable',
    'a parameter without a value': 'postgres://db/llmp?sslmode=',
    'no parameter after the question mark': 'postgres://db/llmp?',
    'TLS if there is any': 'postgres://db/llmp?sslmode=prefer',
    'a certificate that is not used': 'postgres://db/llmp?sslmode=require&sslrootcert=/ca.pem',
    'a certificate without its path': 'postgres://db/llmp?sslmode=verify-full&sslrootcert=ca.pem',
    'an address in place of the name to make sure of': 'mysql://127.0.0.1/llmp?sslmode=verify-full',
    'a host and a socket': 'mysql://db/llmp?socket=/run/mysqld.sock',
    'TLS over a socket': 'postgres:///llmp?host=/run/postgresql&sslmode=require',
    'the socket of the other one': 'postgres:///llmp?socket=/run/x.sock',
    'a host in place of the folder of its socket': 'postgres:///llmp?host=db',
    'what is not encoded well': 'postgres://me:hidden%@db/llmp',
    'a control character': 'postgres://me:hidden%0A@db/llmp',
    'another kind': 'mssql://me:hidden@db/llmp',
  })) {
    it(`with ${what} is refused, and no password shown: ${url}`, () => {
      const problems = problemsWith({ ...POSTGRES, DATABASE_URL: url });
      expect(problems).to.have.length(1);
      expect(problems[0]).to.match(/^DATABASE_URL(?:: .*\. It)? must be a path, sqlite:PATH, postgres:/);
      expect(problems[0]).not.to.match(/hid|den@/);
    });
  }

  for (const [url, problem] of Object.entries({
    'postgres://me:hidden@db/llmp?sslmode=require&connect_timeout=10':
      'unknown parameter connect_timeout; known are sslmode, sslrootcert, channel_binding, host',
    'mysql://me:hidden@db/llmp?sslmode=require&channel_binding=require':
      'unknown parameter channel_binding; known are sslmode, sslrootcert, socket',
    'postgres://me@db/llmp?hidden': 'unknown parameter; known are sslmode, sslrootcert, channel_binding, host',
    'postgres://me@db/llmp?sslmode=require&channel_binding=required':
      'the parameter channel_binding must be one of disable, prefer, require',
    'postgres://me@db/llmp?channel_binding=require':
      'the parameter channel_binding=require needs sslmode=require or verify-full',
    'postgres://me@db/llmp?sslmode=prefer': 'the parameter sslmode must be one of disable, require, verify-full',
    'postgres://me@db/llmp?sslmode=require&sslmode=require': 'the parameter sslmode is given twice',
    'postgres://me@db/llmp?sslrootcert=': 'the parameter sslrootcert has no valid value',
  })) {
    it(`findings-3 B19: names what is wrong with a parameter: ${url}`, () => {
      const [found = ''] = problemsWith({ ...POSTGRES, DATABASE_URL: url });
      expect(found).to.match(/^DATABASE_URL: .*\. It must be a path, /);
      expect(found.slice('DATABASE_URL: '.length)).to.satisfy((text: string) => text.startsWith(`${problem}. It `));
      expect(found).not.to.include('hidden@');
    });
  }

  it('that does not match DB_DRIVER is refused, with the value to set', () => {
    const url = `postgres://me:${canary('password')}@db/llmp`;
    expect(problemsWith({ DATABASE_URL: url })).to.deep.equal([
      'DATABASE_URL is a postgres URL; set DB_DRIVER=postgres',
    ]);
    expect(problemsWith({ ...MYSQL, DATABASE_URL: url })).to.deep.equal([
      'DATABASE_URL is a postgres URL; set DB_DRIVER=postgres',
    ]);
    for (const env of [{}, { DATABASE_URL: '/var/lib/llmp.db' }] as Environment[]) {
      expect(problemsWith({ ...MYSQL, ...env })).to.deep.equal([
        'DB_DRIVER=mysql requires a DATABASE_URL such as mysql://USER:PASSWORD@HOST/NAME',
      ]);
    }
  });

  it('is refused without ENCRYPTION_KEY, which all instances need', () => {
    const [problem, ...others] = problemsWith({ DB_DRIVER: 'mysql', DATABASE_URL: 'mysql://db/llmp' });
    expect(problem).to.match(/^ENCRYPTION_KEY is required with DB_DRIVER=mysql/);
    expect(others).to.deep.equal([]);
  });

  it('has a password that is shown nowhere and is masked in the log, encoded or not', () => {
    const password = `${canary('password')}/@`;
    const written = encodeURIComponent(password);
    const env = { MANAGEMENT_TOKEN, ...POSTGRES, DATABASE_URL: `postgres://me:${written}@db/llmp?sslmode=require` };
    const text = JSON.stringify(describeSettings(env));
    expect(text).to.include('@db/llmp');
    expect(secretsIn(text)).to.deep.equal([]);
    expect(secretsOf(loadSettings(env))).to.include.members([written, password]);
  });
});

describe('a database that instances share', () => {
  const warningsWith = (env: Environment) =>
    loadSettings({ MANAGEMENT_TOKEN, ...POSTGRES, DATABASE_URL: 'postgres://db/llmp', ...env }).warnings;

  it('causes a warning without Redis', () => {
    const [warning, ...others] = warningsWith({ HTTP_CACHE_ENABLED: 'true' });
    expect(warning).to.match(/^REDIS_ADDR is not set: .*cache, rate limits and events.*within a second$/);
    expect(others).to.deep.equal([]);
  });

  it('causes a warning if each has its own cache although Redis is used', () => {
    const redis = { REDIS_ADDR: 'redis:6379' };
    expect(warningsWith({ ...redis, HTTP_CACHE_ENABLED: 'true' })).to.deep.equal([]);
    expect(warningsWith({ ...redis, HTTP_CACHE_BACKEND: 'memory' })).to.deep.equal([]);
    const [warning, ...others] = warningsWith({ ...redis, HTTP_CACHE_BACKEND: 'memory', HTTP_CACHE_ENABLED: 'true' });
    expect(warning).to.match(/^HTTP_CACHE_BACKEND=memory with a shared database/);
    expect(others).to.deep.equal([]);
  });

  it('does not include SQLite', () => {
    expect(loadSettings({ MANAGEMENT_TOKEN, HTTP_CACHE_ENABLED: 'true' }).warnings).to.deep.equal([]);
  });
});
