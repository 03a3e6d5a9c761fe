/** Error responses of the daemon to clients of /v1: their formats and hints. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { mintSecret } from '../../../daemon/core/token.js';
import { canary } from '../../support/canaries.js';
import { chunk, type Fields, head, type RawResponse, WEBSOCKET } from '../../support/raw.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

const OPENAI: Fields = { 'User-Agent': 'OpenAI/Python 3.54.0', 'X-Stainless-Lang': 'python' };
const ANTHROPIC: Fields = { 'Anthropic-Version': '2023-06-01', 'X-Stainless-Lang': 'js' };
const GOOGLE: Fields = { 'X-Goog-Api-Key': 'x', 'X-Goog-Api-Client': 'google-genai-sdk/1.30.0 gl-node/v22' };
const CODES = [
  ...['malformed_request', 'method_not_allowed', 'request_timeout', 'uri_too_long', 'expectation_failed'],
  ...['headers_too_large', 'unauthorized', 'credential_in_query', 'project_inactive', 'not_found', 'body_too_large'],
  ...['request_limit_reached', 'rate_limited', 'internal', 'not_supported', 'loop_detected', 'upstream_key_rejected'],
  ...['upstream_unreachable', 'upstream_malformed', 'upstream_timeout', 'not_cached', 'unavailable'],
];
const SEND_IT = 'Send it as `Authorization: Bearer sk-wt-…`.';

interface InOpenAi {
  error: { message: string; type: string; param: null; code: string };
  code: string;
  request_id: string;
}

/** The types of Anthropic's errors and the canonical codes of Google's, by status. */
const TYPES: Readonly<Record<number, readonly [anthropic: string, google: string]>> = {
  400: ['invalid_request_error', 'INVALID_ARGUMENT'],
  401: ['authentication_error', 'UNAUTHENTICATED'],
  403: ['permission_error', 'PERMISSION_DENIED'],
  405: ['invalid_request_error', 'INVALID_ARGUMENT'],
  413: ['request_too_large', 'INVALID_ARGUMENT'],
  429: ['rate_limit_error', 'RESOURCE_EXHAUSTED'],
  502: ['api_error', 'UNAVAILABLE'],
};

interface InGoogle {
  error: { code: number; message: string; status: string; details: Record<string, unknown>[] };
}
const inGoogle = (answer: RawResponse) => answer.json as unknown as InGoogle;
const inOpenAi = (answer: RawResponse) => answer.json as unknown as InOpenAi;

describe('errors on /v1', () => {
  const scene = ProxyFixture.forSuite({ MAX_REQUEST_SIZE: '200KB', IP_RATE_LIMIT: '1000', MAX_CONNECTIONS: '100' });

  /** Causes each refusal that a single request can cause. */
  const REFUSALS: Record<
    string,
    {
      ask: (fields: Fields) => Promise<RawResponse> | RawResponse;
      status: number;
      type: string;
      isFinal: boolean;
      code?: string;
      /** For SDKs, if they get another status than other clients. */
      toSdks?: { status: number; type: string };
      /** For those of OpenAI, if they get yet another. */
      toOpenAi?: { status: number; type: string };
    }
  > = {
    malformed_request: {
      ask: (fields) => scene.send(head('GET /v1/./models', scene.secret, fields)),
      status: 400,
      type: 'invalid_request_error',
      isFinal: false,
    },
    'malformed_request in the body': {
      ask: (fields) => scene.send(scene.post({ 'Transfer-Encoding': 'chunked', ...fields }, 'no chunk\r\n')),
      status: 400,
      type: 'invalid_request_error',
      isFinal: false,
      code: 'malformed_request',
    },
    unauthorized: {
      ask: (fields) => scene.get(mintSecret(), fields),
      status: 401,
      type: 'authentication_error',
      isFinal: true,
    },
    project_inactive: {
      async ask(fields) {
        const project = await scene.daemon.createProject();
        const { token } = await scene.daemon.createToken(project.id);
        await scene.daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: false });
        return scene.get(token, fields);
      },
      status: 403,
      type: 'permission_error',
      isFinal: true,
    },
    method_not_allowed: {
      ask: (fields) => scene.send(head('TRACE /v1/models', scene.secret, fields)),
      status: 405,
      type: 'invalid_request_error',
      isFinal: false,
    },
    body_too_large: {
      ask: (fields) => scene.send(scene.post({ 'Content-Length': '200001', ...fields })),
      status: 413,
      type: 'invalid_request_error',
      isFinal: true,
    },
    request_limit_reached: {
      async ask(fields) {
        const { token } = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
        expect((await scene.get(token, fields)).status).to.equal(200);
        return scene.get(token, fields);
      },
      status: 429,
      type: 'insufficient_quota',
      isFinal: true,
    },
    upstream_key_rejected: {
      ask(fields) {
        scene.provider.answer = (_req, res) => {
          res.writeHead(401).end();
        };
        return scene.get(scene.secret, fields);
      },
      status: 502,
      type: 'server_error',
      isFinal: true,
      toSdks: { status: 403, type: 'permission_error' },
      toOpenAi: { status: 401, type: 'authentication_error' },
    },
    upstream_unreachable: {
      ask(fields) {
        scene.provider.answer = (_req, res) => {
          res.destroy();
        };
        return scene.send(scene.post(fields));
      },
      status: 502,
      type: 'server_error',
      isFinal: false,
    },
    'the handshake of a WebSocket': {
      ask: (fields) => {
        return scene.send(head('GET /v1/realtime', mintSecret(), { ...WEBSOCKET, ...fields }));
      },
      status: 401,
      type: 'authentication_error',
      isFinal: true,
      code: 'unauthorized',
    },
  };

  for (const [name, { ask, isFinal, code = name, ...refusal }] of Object.entries(REFUSALS)) {
    const { status } = refusal.toSdks ?? refusal;
    const ofOpenAi = refusal.toOpenAi ?? refusal;

    it(`${name}: an SDK of OpenAI reads message, type and code, and ${isFinal ? 'does not retry' : 'may retry'}`, async () => {
      const answer = await ask(OPENAI);
      const { error, ...rest } = inOpenAi(answer);
      expect(answer.status).to.equal(ofOpenAi.status);
      expect(error).to.have.all.keys('message', 'type', 'param', 'code');
      expect(error).to.include({ type: ofOpenAi.type, param: null, code });
      expect(error.message).to.be.a('string').that.is.not.empty;
      expect(rest).to.deep.equal({ code, request_id: answer.header('x-request-id') });
      expect(answer.header('content-type')).to.equal('application/json; charset=utf-8');
      expect(answer.header('x-should-retry')).to.equal(isFinal ? 'false' : undefined);
    });

    it(`${name}: an SDK of Anthropic reads message and type`, async () => {
      const answer = await ask(ANTHROPIC);
      expect(answer.status).to.equal(status);
      const requestId = answer.header('x-request-id');
      const { message } = inOpenAi(await ask(OPENAI)).error;
      const error = { type: TYPES[status]?.[0], message };
      expect(answer.json).to.deep.equal({ type: 'error', error, code, request_id: requestId });
      expect(answer.header('request-id')).to.equal(requestId);
      expect(answer.header('x-should-retry')).to.equal(isFinal ? 'false' : undefined);
    });

    it(`${name}: an SDK of Google reads message, code and status`, async () => {
      const answer = await ask(GOOGLE);
      expect(answer.status).to.equal(status);
      const { error, ...rest } = inGoogle(answer);
      const { message } = inOpenAi(await ask(OPENAI)).error;
      expect(rest).to.deep.equal({});
      expect(error).to.include({ code: status, message, status: TYPES[status]?.[1] });
      const { details } = error;
      expect(details[0]).to.deep.include({ reason: code.toUpperCase(), domain: 'llmp', metadata: { code } });
      expect(details[1]).to.include({ requestId: answer.header('x-request-id') });
      expect(answer.header('x-should-retry')).to.equal(isFinal ? 'false' : undefined);
    });

    it(`${name}: any other client gets the plain format`, async () => {
      const answer = await ask({ 'User-Agent': 'curl/8.5.0' });
      const { error, hint, ...rest } = answer.json;
      expect(answer.status).to.equal(refusal.status);
      expect(rest).to.deep.equal({ code, request_id: answer.header('x-request-id') });
      const message = hint === undefined ? error : `${error as string}: ${hint as string}`;
      expect(inOpenAi(await ask(OPENAI)).error.message, 'the same words').to.equal(message);
    });
  }

  for (const [what, fields, isOfOpenAi] of [
    ['X-Stainless-Lang', { 'X-Stainless-Lang': 'js' }, true],
    ['any other X-Stainless-*', { 'x-STAINLESS-anything': '' }, true],
    ['OpenAI-Beta', { 'OpenAI-Beta': 'assistants=v2' }, true],
    ['OpenAI-Organization, which is not forwarded', { 'OpenAI-Organization': 'org' }, true],
    ['a user agent', { 'User-Agent': 'MyApp/1.0 (go-OPENAI)' }, true],
    ['the user agent of the ai package', { 'User-Agent': 'ai/6.0.325 ai-sdk/provider-utils/4.0.66' }, true],
    ['the user agent of @mistralai/mistralai', { 'User-Agent': 'mistral-client-typescript/2.7.0' }, true],
    ["Go's own user agent, which go-openai sends", { 'User-Agent': 'Go-http-client/1.1' }, true],
    ['X-Goog-Api-Key', GOOGLE, true],
    ['nothing else', { 'X-Other': 'openai', 'User-Agent': 'python-httpx/0.28' }, false],
  ] as readonly [string, Fields, boolean][]) {
    it(`a client is recognised by ${what}`, async () => {
      const { error } = (await scene.get(mintSecret(), fields)).json;
      expect(typeof error).to.equal(isOfOpenAi ? 'object' : 'string');
    });
  }

  it('ERROR_SHAPE sets one format for all clients, but not for management', async () => {
    const own = await ProxyFixture.open({ ERROR_SHAPE: 'openai' });
    expect((await own.get(mintSecret())).json.error).to.include({ code: 'unauthorized' });
    const unread = await own.send('GET /v1/models HTTP/1.1\r\nno field\r\n\r\n');
    expect(unread.json.error).to.include({ code: 'malformed_request', type: 'invalid_request_error' });
    const managed = await own.send(head('GET /manage/tokens', mintSecret(), OPENAI));
    expect(managed.json).to.have.all.keys('error', 'code', 'request_id');
    expect(managed.json.error).to.be.a('string');
    expect(managed.header('www-authenticate')).to.equal('Bearer');
    await own.close();
    const ofAnthropic = await ProxyFixture.open({ ERROR_SHAPE: 'anthropic' });
    expect((await ofAnthropic.get(mintSecret(), OPENAI)).json.error).to.include({ type: 'authentication_error' });
    await ofAnthropic.close();
    const ofGoogle = await ProxyFixture.open({ ERROR_SHAPE: 'google' });
    expect((await ofGoogle.send('GET /v1/models HTTP/1.1\r\nno field\r\n\r\n')).json.error).to.include({
      code: 400,
      status: 'INVALID_ARGUMENT',
    });
    await ofGoogle.close();
    const plain = await ProxyFixture.open({ ERROR_SHAPE: 'plain' });
    expect((await plain.get(mintSecret(), OPENAI)).json.error).to.equal('unauthorized');
    await plain.close();
  });

  it('a rate limit says when to retry, and does not forbid a retry', async () => {
    const limited = await ProxyFixture.open({ IP_RATE_LIMIT: '1' });
    await limited.get();
    const answer = await limited.get(limited.secret, OPENAI);
    expect(answer.status).to.equal(429);
    expect(inOpenAi(answer).error).to.include({ type: 'rate_limit_error', code: 'rate_limited' });
    expect([answer.header('x-should-retry'), answer.header('retry-after')]).to.deep.equal([undefined, '60']);
    const ofGoogle = await limited.get(limited.secret, GOOGLE);
    expect(inGoogle(ofGoogle).error.details[2]).to.include({ retryDelay: '60s' });
    await limited.close();
  });

  it('a loop of requests is not to be retried', async () => {
    await scene.get();
    const mark = String(scene.provider.received.at(-1)?.headers['cdn-loop']);
    const answer = await scene.get(scene.secret, { 'CDN-Loop': mark, ...ANTHROPIC });
    expect(answer.status).to.equal(403);
    expect(answer.header('x-should-retry')).to.equal('false');
    expect(answer.json).to.include({ code: 'loop_detected' });
    expect((await scene.get(scene.secret, { 'CDN-Loop': mark })).status, 'to other clients').to.equal(508);
  });

  describe('hints', () => {
    /** The hint, and the value of `WWW-Authenticate`. */
    async function told(secret: string | null, fields: Fields = {}): Promise<{ hint: unknown; challenge: unknown }> {
      const answer = await scene.get(secret, fields);
      expect(answer.status, answer.text).to.equal(401);
      expect(answer.json).to.include({ error: 'unauthorized', code: 'unauthorized' });
      return { hint: answer.json.hint, challenge: answer.header('www-authenticate') };
    }
    const UNKNOWN = 'the token is unknown, expired or revoked. Ask its issuer for a new one.';

    it('an unknown token gets a hint, as part of the message for an SDK of OpenAI', async () => {
      expect(await told(mintSecret())).to.deep.equal({ hint: UNKNOWN, challenge: 'Bearer error="invalid_token"' });
      const { error } = inOpenAi(await scene.get(mintSecret(), OPENAI));
      expect(error.message).to.equal(`unauthorized: ${UNKNOWN}`);
    });

    it('only the holder of the right secret learns that a token expired or was revoked', async () => {
      const expired = await scene.daemon.createToken(scene.project.id, { duration_minutes: 1 });
      const revoked = await scene.daemon.createToken(scene.project.id);
      await scene.daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
      scene.daemon.clock.advance(60_000);
      const challenge = (why: string) => `Bearer error="invalid_token", error_description="${why}"`;
      expect(await told(expired.token)).to.deep.equal({ hint: UNKNOWN, challenge: challenge('expired') });
      expect(await told(revoked.token)).to.deep.equal({ hint: UNKNOWN, challenge: challenge('revoked') });
      const almost = revoked.token.slice(0, -1) + (revoked.token.endsWith('0') ? '1' : '0');
      expect((await told(almost)).challenge).to.equal('Bearer error="invalid_token"');
    });

    for (const beginning of ['sk-proj-', 'sk-ant-', 'AIza']) {
      it(`a provider's key that begins with ${beginning} gets the hint that a withering token is needed`, async () => {
        const key = `${beginning}${'0123456789'.repeat(4)}`;
        const { hint } = await told(key);
        expect(hint)
          .to.match(/withering token is needed/)
          .and.to.include(`\`${beginning}…\``);
        expect(String(hint)).not.to.include('0123456789');
        expect((await told(null, { 'x-api-key': key })).hint).to.equal(hint);
      });
    }

    for (const [what, fields] of [
      ['x-auth-token', { 'X-Auth-Token': 1 }],
      ['another header', { 'X-Own': 1 }],
    ] as const) {
      it(`a token in ${what} gets the hint where to send it`, async () => {
        const sent = Object.fromEntries(Object.keys(fields).map((name) => [name, scene.secret]));
        const { hint, challenge } = await told(null, sent);
        expect(hint)
          .to.match(new RegExp(`^the token was sent in .*${what}`))
          .and.to.include(SEND_IT);
        expect(challenge).to.equal('Bearer');
      });
    }

    it('an unknown token in x-goog-api-key gets the hint in the format of Google', async () => {
      const answer = await scene.get(null, { 'X-Goog-Api-Key': mintSecret() });
      const { message, code } = inGoogle(answer).error;
      expect({ message, code }).to.deep.equal({ message: `unauthorized: ${UNKNOWN}`, code: 401 });
    });

    it('a missing token, another scheme and an incomplete token get hints of their own', async () => {
      expect((await told(null)).hint).to.match(/^the request has no token\. Send one as/);
      expect((await told(null, { Authorization: 'Basic dTpw' })).hint).to.match(
        /^the Authorization header has no bearer/,
      );
      expect((await told(null, { Authorization: scene.secret })).hint).to.match(
        /^the token was sent in the Authorization header without `Bearer`/,
      );
      expect((await told(scene.secret.slice(0, -1))).hint).to.match(/^the token is incomplete or mistyped/);
      expect((await told(canary('client'))).hint).to.match(/^this is not a withering token/);
    });

    it('a reached cap gets the hint to ask for another token', async () => {
      const { token } = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
      await scene.get(token);
      expect((await scene.get(token)).json).to.include({
        error: 'token request limit reached',
        hint: 'ask for another token',
      });
    });

    it('a base URL with a slash at its end gets a hint', async () => {
      for (const path of ['/v1//chat/completions', '//chat/completions', '//v1/chat/completions']) {
        const answer = await scene.send(head(`POST ${path}`, scene.secret, { 'Content-Length': '0' }));
        expect(answer.status).to.equal(400);
        expect(answer.json, path).to.include({
          code: 'malformed_request',
          hint: 'the base URL of the client must not end with a slash',
        });
      }
      const other = await scene.send(head('GET /v1/%zz', scene.secret));
      expect(other.json).not.to.have.property('hint');
    });

    describe('outside of /v1', () => {
      const chat = (fields: Fields) =>
        head('POST /chat/completions', scene.secret, { 'Content-Length': '0', ...fields });

      it('an SDK without /v1 in its base URL gets the right base URL', async () => {
        const answer = await scene.send(chat({ Host: 'llmp.example:8080', ...OPENAI }));
        expect(answer.status).to.equal(404);
        expect(inOpenAi(answer).error).to.deep.equal({
          message: 'no such path: the API is under /v1: set the base URL to http://llmp.example:8080/v1',
          type: 'invalid_request_error',
          param: null,
          code: 'not_found',
        });
      });

      for (const [what, fields] of [
        ['an invalid Host', { Host: 'a"b' }],
        ['an untrusted proxy in front', { 'X-Forwarded-For': '192.0.2.1' }],
        ['a very long Host', { Host: 'a'.repeat(300) }],
      ] as const) {
        it(`gets no address with ${what}`, async () => {
          const answer = await scene.send(chat(fields));
          expect(answer.text).not.to.match(/https?:\/\//);
          if (answer.status === 404) expect(answer.json.hint).to.match(/^the API is under \/v1: /);
        });
      }

      it('behind a trusted proxy that speaks TLS the base URL has https', async () => {
        const own = await ProxyFixture.open({ TRUSTED_PROXIES: '127.0.0.0/8' });
        const answer = await own.send(head('GET /models', own.secret, { 'X-Forwarded-Proto': 'https' }));
        expect(answer.json.hint).to.equal('the API is under /v1: set the base URL to https://llmp.test/v1');
        await own.close();
      });

      it('management gets no hint', async () => {
        const answer = await scene.send(head('GET /manage/nothing', null, OPENAI));
        expect(answer.json).to.have.all.keys('error', 'code', 'request_id');
      });
    });
  });

  it("a streamed body that is too large is refused in the client's error format too", async () => {
    const answer = await scene.send(
      scene.post({ 'Transfer-Encoding': 'chunked', ...OPENAI }, chunk('x'.repeat(200_001))),
    );
    expect(answer.status).to.equal(413);
    expect(inOpenAi(answer).error).to.include({ code: 'body_too_large', type: 'invalid_request_error' });
    expect(answer.header('x-should-retry')).to.equal('false');
  });
});

describe('the documentation on SDKs', () => {
  const page = (name: string) => readFileSync(join(import.meta.dirname, '../../../../docs', name), 'utf8');

  it('explains how to prevent openai-agents from sending the token to OpenAI with its traces', () => {
    for (const word of ['api.openai.com', 'OPENAI_AGENTS_DISABLE_TRACING=1', 'set_tracing_disabled(True)', 'token']) {
      expect(page('clients/openai-agents.md')).to.include(word);
    }
  });

  it('lists every code that a client of /v1 can get, and ERROR_SHAPE', () => {
    const errors = page('reference/errors.md');
    for (const word of ['ERROR_SHAPE', ...CODES, 'token_revoked', 'X-Should-Retry'])
      expect(errors).to.include(`\`${word}`);
  });
});
