import { expect } from 'chai';
import { join } from 'node:path';
import { describeSettings, type Environment, loadSettings } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { canary, canaryEncryptionKey, secretsIn } from '../support/canaries.js';
import { temporaryFolder } from '../support/daemon.js';
import { file, MANAGEMENT_TOKEN, problemsIn, problemsWith } from '../support/settings.js';

const envFile = (content: string) => readEnvFile(file('llmp.env', content));

describe('an env file', () => {
  const QUOTES = ': a value that begins with a quote must end with it';
  for (const [what, line, more] of [
    ['no =', 'LOG_LEVEL debug', ''],
    ['a colon for it', 'LOG_LEVEL: debug', ''],
    ['no name', '=debug', ''],
    ['a name that is none', 'LOG LEVEL=debug', ''],
    ['a quote that stays open', 'LOG_LEVEL="debug', QUOTES],
    ['text after the quotes', 'LOG_LEVEL="debug" info', QUOTES],
  ] as const) {
    it(`with ${what} in a line is refused, naming the line and not what is in it`, () => {
      const path = file('llmp.env', `LOG_FORMAT=json\n${line}\nLISTEN_ADDR=:8081\n`);
      expect(problemsIn(() => readEnvFile(path))).to.deep.equal([`--env-file: ${path}, line 2: not NAME=value${more}`]);
    });
  }

  it('with several such lines is refused with a problem for each', () => {
    const path = file('llmp.env', 'one\nLOG_LEVEL=info\ntwo');
    expect(problemsIn(() => readEnvFile(path))).to.have.length(2);
  });

  it('that does not exist is refused', () => {
    const path = join(temporaryFolder(), 'none');
    expect(problemsIn(() => readEnvFile(path))).to.deep.equal([`--env-file: cannot read ${path}: ENOENT`]);
  });
});

describe('a setting', () => {
  const originOf = (name: string, env: Environment, content = '') => {
    const { settings } = describeSettings({ MANAGEMENT_TOKEN, ...env }, { file: { ...envFile(content), path: 'F' } });
    const { value, origin } = settings.find((setting) => setting.name === name)!;
    return `${value} from ${origin}`;
  };

  it('comes from the environment first', () => {
    expect(originOf('LOG_LEVEL', { LOG_LEVEL: 'warn' }, 'LOG_LEVEL=debug')).to.equal('warn from environment');
  });

  it('comes from the file that the environment names before the env file', () => {
    const path = file('level', 'warn\n');
    expect(originOf('LOG_LEVEL', { LOG_LEVEL_FILE: path }, 'LOG_LEVEL=debug')).to.equal(
      `warn from LOG_LEVEL_FILE ${path}`,
    );
  });

  it('then comes from the env file, or the file that it names', () => {
    const path = file('level', 'warn\n');
    expect(originOf('LOG_LEVEL', {}, 'LOG_LEVEL=debug')).to.equal('debug from env file F');
    expect(originOf('LOG_LEVEL', {}, `LOG_LEVEL_FILE=${path}`)).to.equal(`warn from LOG_LEVEL_FILE ${path}`);
  });

  it('comes last from a credential', () => {
    const dir = temporaryFolder();
    file('log-level', 'warn\n', dir);
    const env = { CREDENTIALS_DIRECTORY: dir };
    expect(originOf('LOG_LEVEL', env)).to.equal(`warn from credential ${dir}/log-level`);
    expect(originOf('LOG_LEVEL', env, 'LOG_LEVEL=debug')).to.equal('debug from env file F');
  });

  it('has its default otherwise, or none', () => {
    expect(originOf('LOG_LEVEL', {})).to.equal('info from default');
    expect(originOf('REDIS_ADDR', {})).to.equal('null from not set');
  });

  it('that the env file sets twice, directly and as a file, is refused', () => {
    const given = envFile('LOG_LEVEL=debug\nLOG_LEVEL_FILE=/x');
    expect(problemsWith({}, { file: given })).to.deep.equal(['LOG_LEVEL and LOG_LEVEL_FILE are both set; keep one']);
  });
});

describe('settings described', () => {
  const described = (env: Environment) => describeSettings(env);

  it('are complete even if some are invalid, and include the problems', () => {
    const { settings, problems } = described({ LOG_LEVEL: 'loud' });
    expect(problems).to.have.length(2);
    expect(settings.find(({ name }) => name === 'LOG_LEVEL')).to.include({ value: 'loud', origin: 'environment' });
    expect(settings.find(({ name }) => name === 'MANAGEMENT_TOKEN')).to.include({ value: null, origin: 'not set' });
  });

  it('show no secrets, including invalid ones and those in URLs', () => {
    const secrets = {
      MANAGEMENT_TOKEN: `${canary('management')} hidden`,
      ENCRYPTION_KEY: canaryEncryptionKey(),
      ENCRYPTION_KEY_PREVIOUS: `${canaryEncryptionKey()}hidden`,
      REDIS_PASSWORD: canary('password'),
      DISPATCHER_API_KEY: canary('password'),
      UPSTREAM_BASE_URL: `https://me:${canary('password')}@api.example`,
      DISPATCHER_SERVICE: 'webhook',
      DISPATCHER_ENDPOINT: `https://hook.example/x?key=${canary('password')}`,
      DATABASE_URL: `postgres://me:${canary('password')}@host/db`,
    };
    const text = JSON.stringify(described(secrets));
    expect(text).to.include('host/db').and.not.to.include('hidden');
    expect(secretsIn(text)).to.deep.equal([]);
  });
});

describe('an unknown name', () => {
  const warnings = (env: Environment, content?: string) =>
    loadSettings(
      { MANAGEMENT_TOKEN, ...env },
      content === undefined ? {} : { file: { ...envFile(content), path: 'F' } },
    ).warnings;

  for (const [name, nearest] of [
    ['LLMP_SERVR', 'LLMP_SERVER'],
    ['LLMP_PROJECT', 'LLMP_PROJECT_ID'],
    ['LLMP_LOG_LEVEL', 'LOG_LEVEL'],
    ['LLMP_LISTEN_ADR', 'LISTEN_ADDR'],
  ] as const) {
    it(`${name} in the environment is warned about with ${nearest}`, () => {
      expect(warnings({ [name]: 'x' })).to.deep.equal([
        `${name} in the environment is not a setting; did you mean ${nearest}?`,
      ]);
    });
  }

  for (const [name, nearest] of [
    ['REQUEST_TIMOUT', 'REQUEST_TIMEOUT'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['log_level', 'LOG_LEVEL'],
    ['MANAGEMENT_TOKEN_FIEL', 'MANAGEMENT_TOKEN_FILE'],
    ['MAX_REQUEST_SIZES', 'MAX_REQUEST_SIZE'],
  ] as const) {
    it(`${name} in the env file is warned about with ${nearest}`, () => {
      expect(warnings({}, `${name}=x`)).to.deep.equal([`${name} in F is not a setting; did you mean ${nearest}?`]);
    });
  }

  it('that is not similar to any setting causes a warning without a suggestion', () => {
    expect(warnings({ LLMP_ENTIRELY_DIFFERENT_THING: 'x' }, 'TZ=UTC')).to.deep.equal([
      'LLMP_ENTIRELY_DIFFERENT_THING in the environment is not a setting',
      'TZ in F is not a setting',
    ]);
  });

  it('of another program in the environment is ignored', () => {
    expect(warnings({ REQUEST_TIMOUT: 'x', PATH: 'x', LLM_PROXY_OTHER: 'x' })).to.deep.equal([]);
  });

  it('does not include variables of the command line', () => {
    const names = ['SERVER', 'CONTEXT', 'PROJECT_ID', 'OUTPUT', 'CONFIG', 'ASCII'].map((name) => `LLMP_${name}`);
    expect(warnings(Object.fromEntries(names.map((name) => [name, 'x'])))).to.deep.equal([]);
  });
});
