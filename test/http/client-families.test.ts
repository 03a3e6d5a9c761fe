/** Every final refusal for every family of clients: the status with which the client gives up, in the format that it reads. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect } from 'chai';
import { mintSecret } from '../../daemon/core/token.js';
import { withClientFamilies } from '../../daemon/http/clients-page.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { type Fields, head, type RawResponse } from '../support/raw.js';

type Format = 'plain' | 'openai' | 'anthropic' | 'google';
/** By refusal. */
type Statuses = Record<keyof typeof SENTENCES, number>;

const SENTENCES = {
  unauthorized: 'unauthorized: the token is unknown, expired or revoked. Ask its issuer for a new one.',
  project_inactive:
    'project is inactive: ask the issuer of the token to activate the project, or to issue a token for another project',
  request_limit_reached: 'token request limit reached: ask for another token',
  upstream_key_rejected: "upstream rejected the project's key",
};
const KINDS = Object.keys(SENTENCES) as (keyof typeof SENTENCES)[];

const statuses = (...[unauthorized, project_inactive, request_limit_reached, upstream_key_rejected]: number[]) =>
  ({ unauthorized, project_inactive, request_limit_reached, upstream_key_rejected }) as Statuses;
const SPECIFIED = statuses(401, 403, 429, 502);
const OF_SDKS = statuses(401, 403, 429, 403);
const OF_OPENAI = statuses(401, 403, 429, 401);
const NEVER_RETRIED = statuses(401, 403, 403, 403);
const ALL_400 = statuses(400, 400, 400, 400);
const ALL_401 = statuses(401, 401, 401, 401);

const STAINLESS = { 'X-Stainless-Lang': 'js', 'X-Stainless-Retry-Count': '0', 'X-Stainless-Runtime': 'node' };
const ANTHROPIC = { 'anthropic-version': '2023-06-01' };
// Its value is replaced by a token where one is sent.
const GOOGLE = { 'x-goog-api-key': 'x' };
const CODEX = 'codex_exec/0.171.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.171.0)';
const OPENCODE = 'opencode/1.18.33 ai-sdk/provider-utils/4.0.46 runtime/bun/1.3.14';
const HANDSHAKE = {
  ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** The headers that the programs sent, without those that all clients send. */
const CLIENTS: readonly (readonly [name: string, fields: Fields, format: Format, sent: Statuses])[] = [
  ['Codex 0.171', { 'user-agent': CODEX, originator: 'codex_exec', version: '0.171.0' }, 'openai', ALL_400],
  [
    'Codex 0.171, for a WebSocket',
    { 'user-agent': CODEX, 'openai-beta': 'responses_websockets=2026-02-06', ...HANDSHAKE },
    ...(['openai', ALL_400] as const),
  ],
  ['the terminal UI of Codex', { 'user-agent': 'codex-tui/0.171.0 (Debian 12.0.0; x86_64)' }, 'openai', ALL_400],
  ['an older Codex', { 'user-agent': 'codex_cli_rs/0.63.0 (Debian 12.0.0; x86_64)' }, 'openai', ALL_400],
  ['opencode 1.18 with @ai-sdk/openai', { 'User-Agent': OPENCODE }, 'openai', NEVER_RETRIED],
  ['opencode 1.18 with @ai-sdk/anthropic', { 'User-Agent': OPENCODE, ...ANTHROPIC }, 'anthropic', NEVER_RETRIED],
  ['opencode 1.18 with @ai-sdk/google', { 'User-Agent': OPENCODE, ...GOOGLE }, 'google', NEVER_RETRIED],
  [
    'Cline 3',
    { 'user-agent': 'ai-sdk/openai-compatible/3.0.37 ai-sdk/provider-utils/5.0.30 runtime/bun/1.3.13' },
    ...(['openai', NEVER_RETRIED] as const),
  ],
  ['ai 6', { 'User-Agent': 'ai/6.0.325 ai-sdk/provider-utils/4.0.66' }, 'openai', NEVER_RETRIED],
  ['aider 0.86 for Anthropic', { 'User-Agent': 'litellm/1.81.10', ...ANTHROPIC }, 'anthropic', ALL_401],
  ['aider 0.86 for Google', { 'User-Agent': 'litellm/1.81.10', ...GOOGLE }, 'google', ALL_401],
  [
    'aider 0.86 for OpenAI',
    { 'User-Agent': 'OpenAI/Python 2.20.0', 'X-Stainless-Lang': 'python' },
    'openai',
    OF_OPENAI,
  ],
  [
    'Gemini CLI 0.61',
    {
      'User-Agent': 'GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64; terminal)',
      'x-goog-api-client': 'google-genai-sdk/1.30.0 gl-node/v20.20.2',
      ...GOOGLE,
    },
    ...(['google', NEVER_RETRIED] as const),
  ],
  ['Qwen Code 0.24', { ...STAINLESS, 'User-Agent': 'QwenCode/0.24.4 (linux; x64)' }, 'openai', NEVER_RETRIED],
  ['promptfoo 0.121', { 'x-promptfoo-version': '0.121.20', 'user-agent': 'node' }, 'openai', NEVER_RETRIED],
  [
    'promptfoo 0.121 for Google',
    { 'x-promptfoo-version': '0.121.20', 'user-agent': 'node', ...GOOGLE },
    ...(['google', NEVER_RETRIED] as const),
  ],
  [
    'Claude Code 2.1',
    { 'User-Agent': 'claude-cli/2.1.332 (external, sdk-cli)', 'x-app': 'cli', ...STAINLESS, ...ANTHROPIC },
    ...(['anthropic', OF_SDKS] as const),
  ],
  ['openai-agents 0.24', { 'user-agent': 'Agents/Python 0.24.0', 'x-stainless-lang': 'python' }, 'openai', OF_OPENAI],
  ['Continue 1.5', { ...STAINLESS, 'user-agent': 'ls/JS 5.23.2' }, 'openai', OF_OPENAI],
  ['an SDK of Anthropic', { 'User-Agent': 'Anthropic/JS 0.112.3', ...STAINLESS, ...ANTHROPIC }, 'anthropic', OF_SDKS],
  ['an SDK of Google', { 'User-Agent': 'google-genai-sdk/1.30.0 gl-node/v22', ...GOOGLE }, 'google', OF_SDKS],
  ['curl', { 'User-Agent': 'curl/8.5.0' }, 'plain', SPECIFIED],
  ['a client without a name', {}, 'plain', SPECIFIED],
];

const OPENAI_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  429: 'insufficient_quota',
  502: 'server_error',
};
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  ...OPENAI_TYPES,
  429: 'rate_limit_error',
  502: 'api_error',
};
const GOOGLE_STATUSES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  429: 'RESOURCE_EXHAUSTED',
  502: 'UNAVAILABLE',
};

interface Body {
  error: Record<string, unknown>;
  code: string;
}

/** What a reader of this format finds in an error. */
function read(format: Format, { json }: RawResponse): { message: unknown; type: unknown; code: unknown } {
  if (format === 'plain') {
    const { error: text, hint, code } = json as { error: string; hint?: string; code: string };
    return { message: hint === undefined ? text : `${text}: ${hint}`, type: undefined, code };
  }
  const { error, code } = json as unknown as Body;
  const { message } = error;
  if (format !== 'google') return { message, type: error.type, code };
  const [info] = error.details as { metadata: { code: string } }[];
  return { message, type: error.status, code: info?.metadata.code };
}

const TYPES = {
  plain: {} as Readonly<Record<number, string>>,
  openai: OPENAI_TYPES,
  anthropic: ANTHROPIC_TYPES,
  google: GOOGLE_STATUSES,
};

describe('families of clients', () => {
  let scene: ProxyFixture;
  /** Tokens that are refused, by refusal. */
  const secrets = {} as Record<keyof typeof SENTENCES, string>;

  before(async () => {
    scene = await ProxyFixture.open();
    const inactive = await scene.daemon.createProject();
    const spent = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
    await scene.get(spent.token);
    Object.assign(secrets, {
      unauthorized: mintSecret(),
      project_inactive: (await scene.daemon.createToken(inactive.id)).token,
      request_limit_reached: spent.token,
      upstream_key_rejected: scene.secret,
    });
    await scene.daemon.manage('PATCH', `/manage/projects/${inactive.id}`, { is_active: false });
  });
  beforeEach(() => {
    scene.provider.answer = (_req, res) => {
      res.writeHead(401).end();
    };
    scene.daemon.ended.length = 0;
  });
  afterEach(() => scene.end());
  after(() => scene.close());

  const ask = (kind: keyof typeof SENTENCES, fields: Fields, from = scene) => {
    const own = 'x-goog-api-key' in fields ? { 'x-goog-api-key': secrets[kind] } : {};
    return from.send(head('GET /v1/models', 'x-goog-api-key' in fields ? null : secrets[kind], { ...fields, ...own }));
  };

  for (const [name, fields, format, sent] of CLIENTS) {
    for (const kind of KINDS) {
      it(`${name} gets ${sent[kind]} in the format ${format} for ${kind}`, async () => {
        const answer = await ask(kind, fields);
        const type = TYPES[format][sent[kind]];
        expect(answer.status).to.equal(sent[kind]);
        expect(read(format, answer)).to.deep.equal({ message: SENTENCES[kind], type, code: kind });
        if (format === 'google') expect((answer.json as unknown as Body).error.code).to.equal(sent[kind]);
        expect(answer.header('x-should-retry')).to.equal('false');
        if (sent[kind] === 401) expect(answer.header('www-authenticate')).to.match(/^Bearer/);
        const ended = await scene.onlyRecord();
        expect(ended).to.include({ status: sent[kind], code: kind });
      });
    }
  }

  it('a wrong base URL ends Codex too, and the hint for a client of Google names /v1beta', async () => {
    const codex = await scene.send(head('GET /models', null, { 'User-Agent': CODEX }));
    expect(codex.status).to.equal(400);
    expect(read('openai', codex).message).to.equal(
      'no such path: the API is under /v1: set the base URL to http://llmp.test/v1',
    );
    const google = await scene.send(head('GET /models', null, GOOGLE));
    expect(google.status).to.equal(404);
    expect(read('google', google).message).to.equal(
      'no such path: the API is under /v1beta: set the base URL to http://llmp.test/v1beta',
    );
  });

  it('a status that a client was given instead of a 5xx is counted as a failure all the same', async () => {
    await ask('upstream_key_rejected', { 'User-Agent': OPENCODE });
    expect(await scene.onlyRecord()).to.include({ status: 403, outcome: 'upstream_error' });
  });

  it('a rate limit, which passes, is 429 for all', async () => {
    const limited = await ProxyFixture.open({ IP_RATE_LIMIT: '1' });
    await limited.get();
    for (const [name, fields] of CLIENTS) expect((await limited.get(null, fields)).status, name).to.equal(429);
    await limited.close();
  });

  it('only a word that begins with the name of a program is it', async () => {
    const retried = async (agent: string) => (await ask('request_limit_reached', { 'User-Agent': agent })).status;
    expect(await retried('tool/1 (litellm/1.0)')).to.equal(401);
    expect(await retried('LITELLM/1.0')).to.equal(401);
    expect(await retried('mylitellm/1.0')).to.equal(429);
    expect(await retried('openai-sdk/1.0')).to.equal(429);
    expect(await retried(`${' '.repeat(600)}x litellm/1.0`)).to.equal(401);
    expect(await retried(`${'x'.repeat(600)} litellm/1.0`), 'beyond what is read').to.equal(429);
  });

  it('a fixed ERROR_SHAPE is for all clients, with the specified statuses', async () => {
    const fixed = await ProxyFixture.open({ ERROR_SHAPE: 'anthropic' });
    const { token } = await fixed.daemon.createToken(fixed.project.id, { max_requests: 1 });
    await fixed.get(token);
    for (const [name, fields] of CLIENTS) {
      const answer = await fixed.get(token, 'Upgrade' in fields ? { 'user-agent': CODEX } : fields);
      expect(answer.status, name).to.equal(429);
      expect(read('anthropic', answer), name).to.include({ type: 'rate_limit_error' });
    }
    await fixed.close();
  });

  it('the table in docs/clients/README.md is what `npm run docs` writes', () => {
    const page = readFileSync(resolve(import.meta.dirname, '../../../docs/clients/README.md'), 'utf8');
    expect(page).to.equal(withClientFamilies(page));
  });
});
