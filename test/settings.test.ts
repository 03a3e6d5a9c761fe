import { expect } from 'chai';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Environment, loadSettings, SettingsError } from '../config/settings.js';
import { temporaryFolder } from './support/daemon.js';

const MANAGEMENT_TOKEN = 'a-management-token-of-some-length';

const load = (env: Environment = {}) => loadSettings({ MANAGEMENT_TOKEN, ...env });

function problemsOf(env: Environment): readonly string[] {
  try {
    loadSettings(env);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  throw new Error('the settings were accepted');
}

const problemsWith = (env: Environment) => problemsOf({ MANAGEMENT_TOKEN, ...env });

function file(name: string, content: string, dir = temporaryFolder()): string {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}

describe('settings', () => {
  it('need nothing but a management token', () => {
    const { settings, warnings } = load();
    expect(warnings).to.deep.equal([]);
    expect(settings).to.deep.include({
      managementToken: MANAGEMENT_TOKEN,
      listenAddress: { host: '127.0.0.1', port: 8080 },
      managementListenAddress: undefined,
      upstreamBaseUrl: new URL('https://api.openai.com'),
      requestTimeoutMs: 600_000,
      clientBodyTimeoutMs: 30_000,
      upstreamConnectTimeoutMs: 10_000,
      upstreamConnections: 4096,
      maxRequestBytes: 50_000_000,
      maxConnections: 10_000,
      databaseDriver: 'sqlite',
      databasePath: './data/llmp.db',
      autoMigrate: true,
      encryptionKey: undefined,
      tokenStaleLimitMs: 60_000,
      logLevel: 'info',
      logFormat: 'json',
      shutdownDelayMs: 1_000,
      shutdownGraceMs: 30_000,
    });
  });

  it('put the database into STATE_DIRECTORY under systemd', () => {
    expect(load({ STATE_DIRECTORY: '/var/lib/llmp' }).settings.databasePath).to.equal('/var/lib/llmp/llmp.db');
  });

  it('report all problems at once, each with the name and what is accepted', () => {
    const problems = problemsOf({ LISTEN_ADDR: 'nowhere', REQUEST_TIMEOUT: '50', LOG_LEVEL: 'loud' });
    expect(problems).to.deep.equal([
      'MANAGEMENT_TOKEN is required',
      'LISTEN_ADDR must be host:port, [::]:8080, :8080 or unix:/path, not "nowhere"',
      'REQUEST_TIMEOUT must be a duration such as 500ms, 120s, 2m or 1h, at most 596h, not "50"',
      'LOG_LEVEL must be one of debug, info, warn, error, not "loud"',
    ]);
  });

  describe('MANAGEMENT_TOKEN', () => {
    for (const value of [undefined, '', ' ', '\n', ' \t ']) {
      it(`is required, and ${JSON.stringify(value)} is none`, () => {
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
    ] as const) {
      it(`with ${what} is refused, not trimmed, and not repeated`, () => {
        const [problem, ...others] = problemsOf({ MANAGEMENT_TOKEN: value });
        expect(others).to.deep.equal([]);
        expect(problem)
          .to.match(/^MANAGEMENT_TOKEN must be visible ASCII/)
          .and.not.to.include(value.trim());
      });
    }

    it('of fewer than 16 characters is taken with a warning that does not repeat it', () => {
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

    it('lose no more than that', () => {
      for (const end of ['\n\n', ' \n', ' ']) expect(() => tokenIn(MANAGEMENT_TOKEN + end)).to.throw(SettingsError);
    });

    it('that is empty are as good as none', () => {
      expect(problemsOf({ MANAGEMENT_TOKEN_FILE: file('token', '\n') })).to.deep.equal([
        'MANAGEMENT_TOKEN is required',
      ]);
    });

    it('may be any, not only secrets', () => {
      expect(load({ LOG_LEVEL_FILE: file('level', 'debug\n') }).settings.logLevel).to.equal('debug');
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

  describe('from systemd credentials', () => {
    const withCredential = (name: string, content: string, env: Environment = {}) => {
      const dir = temporaryFolder();
      file(name, content, dir);
      return { CREDENTIALS_DIRECTORY: dir, ...env };
    };

    it('are found in lower case with dashes', () => {
      const env = withCredential('management-token', `${MANAGEMENT_TOKEN}\n`);
      expect(loadSettings(env).settings.managementToken).to.equal(MANAGEMENT_TOKEN);
    });

    it('give way to the environment', () => {
      const env = withCredential('management-token', 'the-credential-of-systemd', { MANAGEMENT_TOKEN });
      expect(loadSettings(env).settings.managementToken).to.equal(MANAGEMENT_TOKEN);
    });

    it('that cannot be read are refused with the name', () => {
      const dir = temporaryFolder();
      mkdirSync(join(dir, 'encryption-key'));
      expect(problemsWith({ CREDENTIALS_DIRECTORY: dir })).to.deep.equal([
        `ENCRYPTION_KEY: cannot read ${dir}/encryption-key: EISDIR`,
      ]);
    });
  });

  describe('that are secret', () => {
    const key = Buffer.alloc(32, 7).toString('base64');

    it('are masked where the settings are described', () => {
      const described = load({ ENCRYPTION_KEY: key }).describe();
      expect(described).to.include('MANAGEMENT_TOKEN=********').and.to.include('ENCRYPTION_KEY=********');
      expect(described).not.to.include(MANAGEMENT_TOKEN).and.not.to.include(key);
    });

    it('are in no message when they are wrong', () => {
      const problems = problemsOf({
        MANAGEMENT_TOKEN: 'wrong because\tof the tab',
        ENCRYPTION_KEY: 'wrong-key-wrong-key',
      });
      expect(problems).to.have.length(2);
      expect(problems.join('\n')).not.to.match(/wrong/);
    });

    it('are in no message when they stand in a URL', () => {
      const problems = problemsWith({
        DATABASE_URL: 'postgres://me:hid@hidden@host/db?password=hidden',
        UPSTREAM_BASE_URL: 'https://me:hidden@api.example/?key=hidden',
      });
      expect(problems).to.have.length(2);
      expect(problems.join('\n')).to.include('host/db').and.not.to.match(/hid/);
    });
  });

  it('are described one a line with where each came from', () => {
    const path = file('level', 'warn');
    const lines = load({ LISTEN_ADDR: ':8081', LOG_LEVEL_FILE: path }).describe().split('\n');
    expect(lines).to.include.members([
      'LISTEN_ADDR=:8081  # environment',
      `LOG_LEVEL=warn  # ${path}`,
      'LOG_FORMAT=json  # default',
      'ENCRYPTION_KEY=  # not set',
    ]);
  });
});
