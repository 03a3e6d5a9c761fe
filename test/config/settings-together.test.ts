import { expect } from 'chai';
import { type Environment, loadSettings } from '../../config/settings.js';
import { MANAGEMENT_TOKEN, problemsOf, problemsWith } from '../support/settings.js';

const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const warningsWith = (env: Environment) => loadSettings({ MANAGEMENT_TOKEN, ...env }).warnings;

describe('settings that are valid individually', () => {
  const refused: Record<string, [Environment, string]> = {
    'METRICS_PATH in the API': [{ METRICS_PATH: '/v1/x' }, 'METRICS_PATH=/v1/x conflicts with /v1'],
    'METRICS_PATH below a prefix of the proxy': [
      { METRICS_PATH: '/up/x', PROXY_PREFIXES: '/v1,/up' },
      'METRICS_PATH=/up/x conflicts with /up',
    ],
    'PROXY_PREFIXES on the API': [{ PROXY_PREFIXES: '/v1,/manage' }, 'PROXY_PREFIXES=/manage conflicts with /manage'],
    'PROXY_PREFIXES on a token route': [
      { PROXY_PREFIXES: '/token/v1' },
      'PROXY_PREFIXES=/token/v1 conflicts with /token',
    ],
    'PROXY_PREFIXES on a probe': [{ PROXY_PREFIXES: '/ready' }, 'PROXY_PREFIXES=/ready conflicts with /ready'],
    'PROXY_PREFIXES above the Admin UI': [
      { PROXY_PREFIXES: '/ui', ADMIN_UI_PATH: '/ui/admin' },
      'ADMIN_UI_PATH=/ui/admin/ conflicts with /ui',
    ],
    'PROXY_PREFIXES below the Admin UI': [
      { PROXY_PREFIXES: '/admin/v1' },
      'PROXY_PREFIXES=/admin/v1 conflicts with /admin/',
    ],
    'METRICS_PATH in the API, in other letters': [{ METRICS_PATH: '/V1' }, 'METRICS_PATH=/V1 conflicts with /v1'],
    'METRICS_PATH in the management API': [
      { METRICS_PATH: '/manage/tokens' },
      'METRICS_PATH=/manage/tokens conflicts with /manage',
    ],
    'METRICS_PATH on a probe': [{ METRICS_PATH: '/health' }, 'METRICS_PATH=/health conflicts with /health'],
    'ADMIN_UI_PATH on the API': [{ ADMIN_UI_PATH: '/v1' }, 'ADMIN_UI_PATH=/v1/ conflicts with /v1'],
    'ADMIN_UI_PATH on the management API': [
      { ADMIN_UI_PATH: '/manage' },
      'ADMIN_UI_PATH=/manage/ conflicts with /manage',
    ],
    'ADMIN_UI_PATH on a probe': [{ ADMIN_UI_PATH: '/ready/' }, 'ADMIN_UI_PATH=/ready/ conflicts with /ready'],
    'metrics among the pages of the Admin UI': [
      { ENABLE_METRICS: 'true', METRICS_PATH: '/admin/metrics' },
      'METRICS_PATH=/admin/metrics conflicts with /admin/',
    ],
    'the Admin UI below the metrics': [
      { ENABLE_METRICS: 'true', ADMIN_UI_PATH: '/metrics/ui' },
      'ADMIN_UI_PATH=/metrics/ui/ conflicts with /metrics',
    ],
    'an identity provider without a client, roles and the own address': [
      { OIDC_ISSUER: 'https://login.example.com', OIDC_ROLES: '' },
      'OIDC_ISSUER requires OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_ROLES, PUBLIC_URL',
    ],
    'roles of people who cannot log in': [{ OIDC_ROLES: '/etc/llmp/roles.json' }, 'OIDC_ROLES requires OIDC_ISSUER'],
    'a cache in a Redis that is not there': [
      { HTTP_CACHE_BACKEND: 'redis' },
      'HTTP_CACHE_BACKEND=redis requires REDIS_ADDR',
    ],
    'events on a Redis that is not there': [
      { LLM_PROXY_EVENT_BUS: 'redis-streams' },
      'LLM_PROXY_EVENT_BUS=redis-streams requires REDIS_ADDR',
    ],
    'an object larger than the cache': [
      { HTTP_CACHE_MAX_BYTES: '1MB' },
      'HTTP_CACHE_MAX_OBJECT_BYTES must not exceed HTTP_CACHE_MAX_BYTES',
    ],
    'one address for two servers': [
      { LISTEN_ADDR: ':8080', MANAGEMENT_LISTEN_ADDR: '[::]:8080' },
      'MANAGEMENT_LISTEN_ADDR must differ from LISTEN_ADDR',
    ],
    'one key before and after': [
      { ENCRYPTION_KEY: key(1), ENCRYPTION_KEY_PREVIOUS: key(1) },
      'ENCRYPTION_KEY_PREVIOUS must differ from ENCRYPTION_KEY',
    ],
    'one file for changes and uses': [
      { AUDIT_LOG_FILE: 'x.log', AUDIT_USE_LOG_FILE: 'x.log' },
      'AUDIT_USE_LOG_FILE must differ from AUDIT_LOG_FILE',
    ],
    'a URL where a file is wanted': [
      { DISPATCHER_ENDPOINT: 'https://x.example' },
      'DISPATCHER_ENDPOINT must be the path of a file with DISPATCHER_SERVICE=file',
    ],
    'a file where a URL is wanted': [
      { DISPATCHER_SERVICE: 'webhook', DISPATCHER_ENDPOINT: 'events.jsonl' },
      'DISPATCHER_ENDPOINT must be a URL with DISPATCHER_SERVICE=webhook',
    ],
  };
  for (const [what, [env, problem]] of Object.entries(refused)) {
    const row = 'METRICS_PATH' in env || 'ADMIN_UI_PATH' in env ? 'H18 ' : '';
    it(`${row}are refused together: ${what}`, () => {
      expect(problemsWith(env)).to.deep.equal([problem]);
    });
  }

  for (const name of ['METRICS_PATH', 'ADMIN_UI_PATH']) {
    it(`H18 are refused if they would replace everything else: ${name}=/`, () => {
      expect(problemsWith({ [name]: '/' })).to.deep.equal([
        `${name} must be a path such as /${name === 'METRICS_PATH' ? 'metrics' : 'admin/'}, not "/"`,
      ]);
    });
  }

  const accepted: Record<string, Environment> = {
    'paths that only begin alike': { METRICS_PATH: '/v1metrics', ADMIN_UI_PATH: '/managed/' },
    'metrics that are off where the Admin UI is': { ADMIN_UI_PATH: '/metrics' },
    'metrics where an Admin UI that is off would be': {
      ENABLE_METRICS: 'true',
      METRICS_PATH: '/admin',
      ADMIN_UI_ENABLED: 'false',
    },
    'two addresses that the system is to choose': { LISTEN_ADDR: ':0', MANAGEMENT_LISTEN_ADDR: ':0' },
    'a small cache in memory that is not used': {
      REDIS_ADDR: 'localhost:6379',
      HTTP_CACHE_MAX_BYTES: '1MB',
    },
    'no audit file at all': { AUDIT_LOG_FILE: '', AUDIT_USE_LOG_FILE: '' },
    'a URL for a webhook': { DISPATCHER_SERVICE: 'webhook', DISPATCHER_ENDPOINT: 'https://x.example' },
    'two keys': { ENCRYPTION_KEY: key(1), ENCRYPTION_KEY_PREVIOUS: key(2) },
  };
  for (const [what, env] of Object.entries(accepted)) {
    it(`are accepted together: ${what}`, () => {
      loadSettings({ MANAGEMENT_TOKEN, ...env });
    });
  }

  it('are reported together with invalid settings', () => {
    const env = { LOG_LEVEL: 'loud', METRICS_PATH: '/v1', NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    const names = problemsOf(env).map((problem) => /^[A-Z_]+/.exec(problem)?.[0]);
    expect(names).to.deep.equal(['MANAGEMENT_TOKEN', 'LOG_LEVEL', 'METRICS_PATH', 'NODE_TLS_REJECT_UNAUTHORIZED']);
  });

  it('are not checked against a setting that could not be read', () => {
    const [problem, ...others] = problemsWith({ HTTP_CACHE_BACKEND: 'redis', REDIS_ADDR: 'localhost' });
    expect(problem).to.match(/^REDIS_ADDR must be host:port/);
    expect(others).to.deep.equal([]);
  });

  it('are reported once when others depend on a file that cannot be read', () => {
    expect(problemsWith({ REDIS_ADDR_FILE: '/nowhere/redis' })).to.deep.equal([
      'REDIS_ADDR_FILE: cannot read /nowhere/redis: ENOENT',
    ]);
  });
});

describe('a warning', () => {
  for (const [url, warning] of [
    ['https://api.openai.com/v1', '/v1, which is ignored'],
    ['https://api.groq.com/openai/v1/', 'https://api.groq.com/openai/v1/…'],
    ['http://provider.example', 'unencrypted'],
    ['https://api.openai.com', ''],
    ['http://127.0.0.1:11434', ''],
    ['http://localhost:11434', ''],
  ] as const) {
    it(`is ${warning === '' ? 'not ' : ''}given for the provider at ${url}`, () => {
      const warnings = warningsWith({ UPSTREAM_BASE_URL: url }).join();
      if (warning === '') expect(warnings).to.equal('');
      else expect(warnings).to.include(warning);
    });
  }

  it('is given if TRUSTED_PROXIES trusts all addresses', () => {
    for (const TRUSTED_PROXIES of ['10.0.0.0/8,0.0.0.0/0', '::/0']) {
      expect(warningsWith({ TRUSTED_PROXIES })).to.include(
        'TRUSTED_PROXIES trusts all addresses: any client can claim any address',
      );
    }
    expect(warningsWith({ TRUSTED_PROXIES: '10.0.0.0/8' }).join()).not.to.include('every address');
  });
});

describe('dangerous surroundings', () => {
  const tls = 'NODE_TLS_REJECT_UNAUTHORIZED=0 would send upstream keys to unverified servers; unset it';

  it('are refused: disabled certificate checks', () => {
    expect(problemsWith({ NODE_TLS_REJECT_UNAUTHORIZED: '0' })).to.deep.equal([tls]);
    expect(loadSettings({ MANAGEMENT_TOKEN, NODE_TLS_REJECT_UNAUTHORIZED: '1' }).warnings).to.deep.equal([]);
  });

  for (const [option, why] of [
    ['--inspect', 'exposes all secrets to a debugger'],
    ['--inspect=0.0.0.0:9229', 'exposes all secrets to a debugger'],
    ['--inspect-brk', 'exposes all secrets to a debugger'],
    ['--inspect_brk=9229', 'exposes all secrets to a debugger'],
    ['--insecure-http-parser', 'allows request smuggling'],
    ['--insecure_http_parser', 'allows request smuggling'],
  ] as const) {
    const name = option.replaceAll('_', '-').replace(/=.*/, '');

    it(`are refused: ${option} in NODE_OPTIONS`, () => {
      for (const NODE_OPTIONS of [option, `--max-old-space-size=99  ${option}`, `"${option}"`]) {
        expect(problemsWith({ NODE_OPTIONS })).to.deep.equal([`${name} in NODE_OPTIONS ${why}; remove it`]);
      }
    });

    it(`are refused: ${option} on the command line`, () => {
      expect(problemsWith({}, { execArgv: ['--enable-source-maps', option] })).to.deep.equal([
        `${name} in the command line of node ${why}; remove it`,
      ]);
    });
  }

  it('do not include similar names', () => {
    const NODE_OPTIONS = '--inspect-port=0 --enable-source-maps --title=--inspect';
    loadSettings({ MANAGEMENT_TOKEN, NODE_OPTIONS }, { execArgv: ['--', '--max-http-header-size=1'] });
  });
});
