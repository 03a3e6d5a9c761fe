import { expect } from 'chai';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Environment, loadSettings, secretsOf, SettingsError } from '../../config/settings.js';
import { canary, canaryEncryptionKey, secretsIn } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { file, MANAGEMENT_TOKEN, problemsOf, problemsWith } from '../support/settings.js';

const load = (env: Environment = {}) => loadSettings({ MANAGEMENT_TOKEN, ...env });

describe('settings', () => {
  it('require only a management token', () => {
    const { settings, reloadable, warnings } = load();
    expect(warnings).to.deep.equal([]);
    // Nothing of another machine can reach it, claim an address, or have a prompt stored.
    expect({ ...settings, ...reloadable }).to.deep.include({
      managementToken: MANAGEMENT_TOKEN,
      listenAddress: { host: '127.0.0.1', port: 8080 },
      trustedProxies: undefined,
      corsAllowedOrigins: undefined,
      queryKey: 'refuse',
      httpCacheEnabled: false,
      observabilityCaptureBodies: false,
    });
  });

  describe('whose defaults depend on other settings', () => {
    const settingsWith = (env: Environment) => load(env).settings;

    it('put the database into STATE_DIRECTORY under systemd, the first of several', () => {
      for (const STATE_DIRECTORY of ['/var/lib/llmp', '/var/lib/llmp:/var/lib/other']) {
        expect(settingsWith({ STATE_DIRECTORY }).database).to.deep.equal({
          driver: 'sqlite',
          path: '/var/lib/llmp/llmp.db',
        });
      }
    });

    it('put the audit files into LOGS_DIRECTORY under systemd', () => {
      expect(settingsWith({ LOGS_DIRECTORY: '/var/log/llmp' })).to.include({
        auditLogFile: '/var/log/llmp/audit.log',
        auditUseLogFile: '/var/log/llmp/audit-use.log',
      });
    });

    it('put the file of uses into the folder of AUDIT_LOG_FILE', () => {
      const AUDIT_LOG_FILE_FILE = file('where', '/audit/changes\n');
      for (const env of [{ AUDIT_LOG_FILE: '/audit/changes' }, { AUDIT_LOG_FILE_FILE }]) {
        expect(settingsWith(env)).to.include({
          auditLogFile: '/audit/changes',
          auditUseLogFile: '/audit/audit-use.log',
        });
      }
    });

    it('write the file of uses even if that of changes is turned off', () => {
      expect(settingsWith({ AUDIT_LOG_FILE: '', LOGS_DIRECTORY: '/var/log/llmp' })).to.include({
        auditLogFile: null,
        auditUseLogFile: '/var/log/llmp/audit-use.log',
      });
    });

    it('use Redis for cache and events when there is one', () => {
      const shared = { httpCacheBackend: 'redis', eventBus: 'redis-streams' };
      expect(settingsWith({ REDIS_ADDR: 'localhost:6379' })).to.include(shared);
      expect(settingsWith({ REDIS_ADDR_FILE: file('redis', 'localhost:6379') })).to.include(shared);
      const own = { HTTP_CACHE_BACKEND: 'memory', LLM_PROXY_EVENT_BUS: 'off' };
      expect(settingsWith({ REDIS_ADDR: 'localhost:6379', ...own })).to.include({
        httpCacheBackend: 'memory',
        eventBus: 'off',
      });
    });

    it('log as text where people read it, by default', () => {
      const formatOf = (env: Environment) =>
        loadSettings({ MANAGEMENT_TOKEN, ...env }, { isReadByPeople: true }).settings.logFormat;
      expect(formatOf({})).to.equal('text');
      expect(formatOf({ LOG_FORMAT: 'json' })).to.equal('json');
      expect(formatOf({ LOG_FORMAT_FILE: file('format', 'json') })).to.equal('json');
    });
  });

  it('report all problems at once, each with the name and accepted values', () => {
    const problems = problemsOf({ LISTEN_ADDR: 'nowhere', REQUEST_TIMEOUT: '50', LOG_LEVEL: 'loud' });
    expect(problems).to.deep.equal([
      'MANAGEMENT_TOKEN is required',
      'LISTEN_ADDR must be host:port, [::]:8080, :8080 or unix:/path, not "nowhere"',
      'REQUEST_TIMEOUT must be a duration such as 500ms, 120s, 2m or 1h, up to 596h, not "50"',
      'LOG_LEVEL must be one of debug, info, warn, error, not "loud"',
    ]);
  });

  describe('MANAGEMENT_TOKEN', () => {
    for (const value of [undefined, '', ' ', '\n', ' \t ']) {
      it(`H06 is required, and ${JSON.stringify(value)} is none`, () => {
        expect(problemsOf({ MANAGEMENT_TOKEN: value })).to.deep.equal(['MANAGEMENT_TOKEN is required']);
      });
    }

    for (const [what, value] of [
      ['a trailing newline', `${MANAGEMENT_TOKEN}\n`],
      ['a trailing space', `${MANAGEMENT_TOKEN} `],
      ['a leading space', ` ${MANAGEMENT_TOKEN}`],
      ['a tab', `${MANAGEMENT_TOKEN}\t`],
      ['a space in it, which no header could present', 'two words'],
      ['a letter beyond ASCII', 'schlüssel'],
      ['the secret of an operator, who would have all rights', `sk-op-${'x'.repeat(49)}`],
      ['the secret of a session', `sk-ss-${'x'.repeat(49)}`],
    ] as const) {
      it(`H05 with ${what} is refused, not trimmed, and not repeated`, () => {
        const [problem, ...others] = problemsOf({ MANAGEMENT_TOKEN: value });
        expect(others).to.deep.equal([]);
        expect(problem)
          .to.match(/^MANAGEMENT_TOKEN must be visible ASCII/)
          .and.not.to.include(value.trim());
      });
    }

    it('H06 of fewer than 16 characters is accepted with a warning that does not repeat it', () => {
      const { settings, warnings } = load({ MANAGEMENT_TOKEN: '15-characters-x' });
      expect(settings.managementToken).to.equal('15-characters-x');
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.include('MANAGEMENT_TOKEN').and.not.to.include('15-characters-x');
      expect(load({ MANAGEMENT_TOKEN: '16-characters-xx' }).warnings).to.deep.equal([]);
    });
  });

  describe('from a file', () => {
    const tokenIn = (content: string) =>
      loadSettings({ MANAGEMENT_TOKEN_FILE: file('token', content) }).settings.managementToken;

    it('by NAME_FILE lose one newline at the end', () => {
      for (const end of ['', '\n', '\r\n']) expect(tokenIn(MANAGEMENT_TOKEN + end)).to.equal(MANAGEMENT_TOKEN);
    });

    it('lose nothing else', () => {
      for (const end of ['\n\n', ' \n', ' ']) expect(() => tokenIn(MANAGEMENT_TOKEN + end)).to.throw(SettingsError);
    });

    it('that is empty are not set', () => {
      expect(problemsOf({ MANAGEMENT_TOKEN_FILE: file('token', '\n') })).to.deep.equal([
        'MANAGEMENT_TOKEN is required',
      ]);
    });

    it('that cannot be read are refused with the name and the path', () => {
      expect(problemsOf({ MANAGEMENT_TOKEN_FILE: '/nowhere/token' })).to.deep.equal([
        'MANAGEMENT_TOKEN_FILE: cannot read /nowhere/token: ENOENT',
      ]);
    });

    it('and from the environment at once are refused', () => {
      expect(problemsWith({ MANAGEMENT_TOKEN_FILE: file('token', 'x') })).to.deep.equal([
        'MANAGEMENT_TOKEN and MANAGEMENT_TOKEN_FILE are both set; keep one',
      ]);
    });
  });

  it('from systemd credentials that cannot be read are refused with the name', () => {
    const dir = temporaryFolder();
    mkdirSync(join(dir, 'encryption-key'));
    expect(problemsWith({ CREDENTIALS_DIRECTORY: dir })).to.deep.equal([
      `ENCRYPTION_KEY: cannot read ${dir}/encryption-key: EISDIR`,
    ]);
  });

  describe('that are secret', () => {
    const key = canaryEncryptionKey();

    it('are passed to the log, which masks their values', () => {
      const secrets = {
        ENCRYPTION_KEY: key,
        REDIS_PASSWORD: canary('password'),
        DISPATCHER_API_KEY: canary('password'),
      };
      const loaded = loadSettings({ MANAGEMENT_TOKEN, ...secrets });
      expect(secretsOf(loaded)).to.have.members([MANAGEMENT_TOKEN, ...Object.values(secrets)]);
    });

    it('are in no message when they are wrong', () => {
      const problems = problemsOf({
        MANAGEMENT_TOKEN: `${canary('management')}\tbefore a tab`,
        ENCRYPTION_KEY: `${canaryEncryptionKey()}too long`,
      });
      expect(problems).to.have.length(2);
      expect(problems.join('\n')).not.to.match(/tab|too long/);
      expect(secretsIn(problems.join('\n'))).to.deep.equal([]);
    });

    it('are in no message when they stand in a URL', () => {
      const password = canary('password');
      const problems = problemsWith({
        DATABASE_URL: `postgres://me:hid@${password}@host/db?password=${password}`,
        UPSTREAM_BASE_URL: `https://me:${password}@api.example/?key=${password}`,
      });
      expect(problems).to.have.length(2);
      expect(problems.join('\n')).to.include('host/db').and.not.to.match(/hid/);
      expect(secretsIn(problems.join('\n'))).to.deep.equal([]);
    });
  });
});
