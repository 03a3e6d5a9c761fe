import { expect } from 'chai';
import { ConnectionError, ConnectionRefusedError, QueryTypes } from 'sequelize';
import type { WireProblem } from '../../daemon/api/contract.js';
import { mintSecret, mintSecretOf, SECRET_PREFIXES, type SecretKind } from '../../daemon/core/token.js';
import { canary, secretsIn } from '../support/canaries.js';
import { daemonForSuite, MANAGEMENT_TOKEN, recordingLog, startDaemon } from '../support/daemon.js';
import { inspect, inspectFiles, leaksOf } from '../support/leaks.js';
import { auditOf, bodyOf, problemOf, rawRequest, type RawRequest, write } from '../support/management.js';
import { makeDatabaseUnreachable } from '../support/database-outage.js';
import { chunk, type Fields, head, WEBSOCKET } from '../support/raw.js';
import { expectPlain } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';

const basic = (secret: string) => `Basic ${Buffer.from(`user:${secret}`).toString('base64')}`;

describe('I: secrets that a client of /v1 sends are not kept anywhere', () => {
  const { stage, it } = staged();
  const get = (fields: Fields, target?: string) => stage.get(fields, target);
  const withCredential = (value: string | string[]) => get({ Authorization: value });
  const chunked = { 'Transfer-Encoding': 'chunked' };
  const offering = (secret: string) => ({ 'Sec-WebSocket-Protocol': `realtime, openai-insecure-api-key.${secret}` });

  /** What is sent, and the status of its response. */
  const SENT: Record<string, [status: number, bytes: () => string]> = {
    'an unknown token': [401, () => withCredential(`Bearer ${mintSecret()}`)],
    'a token with a typo': [401, () => withCredential(`Bearer ${stage.secret.slice(0, -1)}_`)],
    'something other than a token': [401, () => withCredential(`Bearer ${canary('client')}`)],
    'the management token': [401, () => withCredential(`Bearer ${MANAGEMENT_TOKEN}`)],
    'a token without a scheme': [401, () => withCredential(stage.secret)],
    'a token after two spaces': [401, () => withCredential(`Bearer  ${stage.secret}`)],
    'a token and a second word': [401, () => withCredential(`Bearer ${stage.secret} ${canary('client')}`)],
    'a user name and a password': [401, () => withCredential(basic(stage.secret))],
    'a digest': [401, () => withCredential(`Digest username="a", response="${canary('client')}"`)],
    'two credentials': [400, () => withCredential([`Bearer ${stage.secret}`, `Bearer ${canary('client')}`])],
    'a cookie': [200, () => get({ Cookie: `session=${canary('client')}; token=${mintSecret()}` })],
    'other credentials': [
      400,
      () => get({ 'X-Api-Key': mintSecret(), 'Api-Key': canary('client'), 'Proxy-Authorization': basic(mintSecret()) }),
    ],
    'credentials in headers that do not count': [
      401,
      () =>
        get({ Authorization: [], 'X-Api-Key': stage.secret, Cookie: stage.secret }, `/v1/models?key=${stage.secret}`),
    ],
    'a query': [401, () => get({}, `/v1/models?api_key=${canary('client')}&token=${mintSecret()}`)],
    'a query that is refused': [401, () => head(`GET /v1/models?token=${mintSecret()}`, mintSecret())],
    'a path': [401, () => get({}, `/v1/files/${mintSecret()}`)],
    'a path that is refused': [400, () => get({}, `/v1/../${mintSecret()}`)],
    "another client's address": [400, () => get({}, `http://user:${canary('client')}@evil/v1/models`)],
    'a request id': [200, () => get({ 'X-Request-ID': mintSecret() })],
    'a request id that contains one': [200, () => get({ 'X-Request-ID': `of-${mintSecret()}` })],
    'a host': [400, () => get({ Host: `user:${canary('client')}@llmp.test` })],
    'an expectation': [417, () => get({ Expect: canary('client') })],
    'an origin and a referrer': [
      200,
      () => get({ Origin: `https://${canary('client')}`, Referer: `https://x/?key=${mintSecret()}` }),
    ],
    'a User-Agent and an address': [
      200,
      () => get({ 'User-Agent': mintSecret(), 'X-Forwarded-For': canary('client') }),
    ],
    'the subprotocol of a handshake': [400, () => get({ ...WEBSOCKET, ...offering(mintSecret()) })],
    'the only credential of a handshake': [
      401,
      () => get({ ...WEBSOCKET, ...offering(mintSecret()), Authorization: [] }),
    ],
    'the credential of a handshake, and its query': [
      401,
      () => head(`GET /v1/realtime?token=${mintSecret()}`, mintSecret(), WEBSOCKET),
    ],
    'a body': [200, () => stage.post(JSON.stringify({ key: canary('client'), token: mintSecret() }))],
    'a body that is not JSON': [200, () => stage.post(`{"key":"${canary('client')}",`)],
    'a form': [200, () => stage.post(`key=${canary('client')}`, { 'Content-Type': `x/${canary('client')}` })],
    'an extension and a trailer of chunks': [
      200,
      () => `${stage.post('', chunked)}2;key=${mintSecret()}\r\nhi\r\n0\r\nX-Token: ${mintSecret()}\r\n\r\n`,
    ],
    'a chunk without a size': [400, () => `${stage.post('', chunked)}${chunk('first')}${mintSecret()}\r\n`],
    'a transfer coding': [501, () => get({ 'Transfer-Encoding': `${canary('client')}, chunked` })],
    'a length': [400, () => get({ 'Content-Length': mintSecret() })],
    'a header without a colon': [400, () => get({}).replace('\r\n\r\n', `\r\n${mintSecret()}\r\n\r\n`)],
    'a method': [400, () => get({}).replace('GET', canary('client'))],
    'a version': [400, () => get({}).replace('HTTP/1.1', `HTTP/${canary('client')}`)],
    'too many headers': [
      431,
      () => get(Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`X-${n}`, mintSecret()]))),
    ],
  };

  for (const [what, [status, bytes]] of Object.entries(SENT)) {
    it(`I01 a secret in ${what} is in no output, record or file`, async () => {
      const leaks = await leaksOf(async () => {
        const sent = bytes();
        expect(secretsIn(sent), 'secrets sent').not.to.be.empty;
        const answer = await stage.ask(sent);
        expect(answer.status, answer.text).to.equal(status);
        if (status >= 400) expectPlain(answer.json);
        await stage.daemon.daemon.admission.readBetweenTicks(() => Promise.resolve());
        inspectFiles(stage.daemon.dir);
      });
      expect(leaks).to.deep.equal([]);
    });
  }

  it('I01 a secret in a body that breaks off is in no output, record or file', async () => {
    const client = await stage.client(stage.post('', chunked) + chunk(canary('client')));
    await stage.inFlight(1);
    client.destroy();
    expect((await stage.onlyRecord()).outcome).to.equal('client_closed');
  });

  it('I13 the record of a request has no headers, bodies or query, and no token in its path', async () => {
    const path = `/v1/files/${mintSecret()}/content`;
    const body = JSON.stringify({ prompt: 'a body' });
    await stage.ask(
      head(`POST ${path}?q=a-query`, stage.secret, { 'Content-Length': String(body.length), 'X-Own': 'a-header' }) +
        body,
    );
    const ended = await stage.onlyRecord();
    expect(ended.path).to.equal('/v1/files/********/content');
    expect(JSON.stringify(ended)).not.to.match(/a-header|a-query|a body|prompt/);
    // A new field of the record must be considered here.
    expect(ended).to.have.all.keys(
      ...['requestId', 'timeMs', 'projectId', 'tokenId', 'obfuscated', 'clientIp', 'method', 'path', 'status', 'code'],
      ...['outcome', 'cache', 'durationMs', 'upstreamMs', 'firstByteMs', 'bytesIn', 'bytesOut', 'streamed'],
      ...[
        'upstreamRequestId',
        'isModelAnswered',
        'model',
        'usage',
        'requestBody',
        'responseBody',
        'isForwarded',
        'problem',
        'tokenName',
        'projectName',
        'costNano',
      ],
    );
    expect([ended.requestBody, ended.responseBody]).to.deep.equal([null, null]);
  });

  it('I13 C32 the record of a request does not have the upstream key, even if the upstream returns it in its own request ID', async () => {
    stage.upstreamEchoesSecrets = true;
    stage.upstream.script = (exchange) => {
      const key = exchange.all('authorization').join();
      exchange.respond(200, `X-Request-ID: ${key}\r\nX-Key: ${key}\r\n`, JSON.stringify({ key }));
    };
    expect((await stage.ask(stage.get())).header('x-key')).to.equal('Bearer ********');
    expect((await stage.onlyRecord()).upstreamRequestId).to.equal('Bearer ********');
  });
});

describe('I: secrets', () => {
  const daemon = daemonForSuite();

  /** Which secrets leaked where, including the audit records and the files of the database. */
  const leaksWith = (action: () => Promise<unknown>) =>
    leaksOf(async () => {
      await action();
      inspect('audit records', JSON.stringify(await auditOf(daemon)));
      inspectFiles(daemon.dir);
    });

  describe('sent to /manage in the wrong place:', () => {
    const SENT: Record<string, [status: number, request: () => RawRequest]> = {
      'an unknown credential': [
        401,
        () => ({ path: '/manage/projects', headers: { authorization: `Bearer ${canary('client')}` } }),
      ],
      'a withering token': [
        401,
        () => ({ path: '/manage/projects', headers: { authorization: `Bearer ${mintSecret()}` } }),
      ],
      'a user name and a password': [
        401,
        () => ({ path: '/manage/projects', headers: { authorization: basic(MANAGEMENT_TOKEN) } }),
      ],
      'the management token in the query': [
        401,
        () => ({ path: `/manage/projects?token=${MANAGEMENT_TOKEN}`, headers: { authorization: undefined } }),
      ],
      'a cookie': [200, () => ({ path: '/manage/projects', headers: { cookie: `token=${canary('client')}` } })],
      'the value of an unknown query name': [400, () => ({ path: `/manage/projects?token=${mintSecret()}` })],
      'the value of a query name': [400, () => ({ path: `/manage/tokens?limit=${mintSecret()}` })],
      'a cursor': [400, () => ({ path: `/manage/tokens?cursor=${mintSecret()}` })],
      'a search': [400, () => ({ path: `/manage/tokens?q=${mintSecret()}` })],
      'an id': [404, () => ({ path: `/manage/tokens/${mintSecret()}` })],
      'an id to be deleted': [405, () => ({ method: 'DELETE', path: `/manage/projects/${mintSecret()}` })],
      'an unknown path': [404, () => ({ path: `/manage/${mintSecret()}` })],
      'a path that cannot be decoded': [400, () => ({ path: `/manage/tokens/${mintSecret()}%zz` })],
      'a tag': [200, () => ({ path: '/manage/projects', headers: { 'if-none-match': `"${canary('client')}"` } })],
      'the front end': [
        400,
        () => withBody({ name: 'x', api_key: canary('upstream') }, { 'x-llmp-actor': canary('client') }),
      ],
      'the address of a browser': [
        400,
        () => withBody({ name: 'x', api_key: canary('upstream') }, { 'x-llmp-client-ip': canary('client') }),
      ],
      'a reason that is too long': [
        400,
        () => withBody({ name: 'x', api_key: canary('upstream') }, { 'x-audit-reason': mintSecret().repeat(4) }),
      ],
      'a content type': [
        415,
        () => withBody({ name: 'x', api_key: canary('upstream') }, { 'content-type': `x/${canary('client')}` }),
      ],
      'a content encoding': [
        415,
        () => withBody({ name: 'x', api_key: canary('upstream') }, { 'content-encoding': canary('client') }),
      ],
      'a key of the wrong type': [400, () => withBody({ name: 'x', api_key: [canary('upstream')] })],
      'a key with white space': [400, () => withBody({ name: 'x', api_key: `${canary('upstream')} ` })],
      'a key that is too long': [400, () => withBody({ name: 'x', api_key: canary('upstream').repeat(500) })],
      'a key under another name': [400, () => withBody({ name: 'x', key: canary('upstream') })],
      'a body that is too large': [413, () => withBody({ name: 'x', api_key: canary('upstream').repeat(5_000) })],
      'a body that is not JSON': [400, () => withBody(`{"name":"x","api_key":"${canary('upstream')}",}`)],
      'a body that is a list': [400, () => withBody([canary('upstream')])],
      'an unknown token to be looked up': [
        404,
        () => ({ ...withBody({ token: mintSecret() }), path: '/manage/tokens/lookup' }),
      ],
      'something else to be looked up': [
        404,
        () => ({ ...withBody({ token: canary('upstream') }), path: '/manage/tokens/lookup' }),
      ],
      'the project of a token': [404, () => ({ ...withBody({ project_id: mintSecret() }), path: '/manage/tokens' })],
    };

    for (const [what, [status, request]] of Object.entries(SENT)) {
      it(`I01 ${what} with a secret: it is in no output, record or file`, async () => {
        const leaks = await leaksWith(async () => {
          const answer = await rawRequest(daemon, request());
          expect(answer.status, answer.text).to.equal(status);
        });
        expect(leaks).to.deep.equal([]);
      });
    }

    for (const kind of Object.keys(SECRET_PREFIXES) as SecretKind[]) {
      const secret = mintSecretOf(kind);
      const sent: [what: string, status: number, method: string, path: string, body?: object][] = [
        [
          'the name of a project',
          400,
          'POST',
          '/manage/projects',
          { name: `of ${secret}`, api_key: canary('upstream') },
        ],
        ['the name of an operator', 400, 'POST', '/manage/operators', { name: `of${secret}`, role: 'viewer' }],
        ['a model', 400, 'POST', '/manage/operators', { name: 'x', role: 'viewer', ceilings: { models: [secret] } }],
        ['a log-in', 403, 'POST', '/manage/sessions', { token: secret }],
        ['a search', 400, 'GET', `/manage/tokens?q=x+${secret}`],
        ['a path', 404, 'GET', `/manage/operators/${secret}`],
        ['a lookup', 404, 'POST', '/manage/tokens/lookup', { token: secret }],
      ];
      for (const [what, status, method, path, body] of sent) {
        it(`I01 the secret of a ${kind} in ${what} is in no output, record or file`, async () => {
          const headers = { 'x-request-id': `of-${secret}`, 'x-llmp-user': secret };
          const leaks = await leaksWith(async () => {
            const answer = await daemon.manage(method, path, body, headers);
            expect(answer.status, JSON.stringify(answer.body)).to.equal(status);
          });
          expect(leaks).to.deep.equal([]);
        });
      }
    }

    it('I01 a token in the reason of a change is masked in the record', async () => {
      const { id } = await daemon.createProject();
      const leaks = await leaksWith(() =>
        bodyOf(
          daemon.manage(
            'PATCH',
            `/manage/projects/${id}`,
            { is_active: false },
            { 'x-audit-reason': `leaked:${mintSecret()}!` },
          ),
        ),
      );
      expect(leaks).to.deep.equal([]);
      expect((await auditOf(daemon)).at(-1)).to.include({ action: 'project.update', reason: 'leaked:********!' });
    });
  });

  function withBody(body: unknown, headers: Record<string, string> = {}): RawRequest {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return {
      method: 'POST',
      path: '/manage/projects',
      body: text,
      headers: { 'content-type': 'application/json', ...headers },
    };
  }
  const creating = (fields: Record<string, unknown>) => daemon.manage('POST', '/manage/projects', fields);

  describe('when the database fails', () => {
    it('I02 secrets are in no response, log line or file when a name is taken', async () => {
      const { name } = await daemon.createProject();
      const leaks = await leaksWith(async () =>
        problemOf(await creating({ name, api_key: canary('upstream') }), 409, 'name_taken'),
      );
      expect(leaks).to.deep.equal([]);
    });

    for (const table of ['projects', 'tokens']) {
      it(`I02 secrets are in no response, log line or file when the table of ${table} accepts no rows; the log reports that`, async () => {
        const { id } = await daemon.createProject();
        await write(daemon, `CREATE TRIGGER full BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'is-full'); END`);
        const logged = daemon.logged.length;
        const leaks = await leaksWith(async () => {
          const answers = [
            await creating({ name: `unwritten ${table}`, api_key: canary('upstream') }),
            await daemon.manage('POST', '/manage/tokens', { project_id: id }),
          ];
          problemOf(answers[table === 'projects' ? 0 : 1]!, 503, 'unavailable');
        });
        await write(daemon, 'DROP TRIGGER full');
        expect(leaks).to.deep.equal([]);
        const lines = daemon.logged.slice(logged).join('');
        expect(lines)
          .to.include('is-full')
          .and.not.to.match(/INSERT|VALUES|digest|api_key/);
      });
    }

    it("I02 an error of Sequelize's own, which contains secrets, is logged without them", async () => {
      const sequelize = await daemon.daemon.stores.database.loadSequelize();
      const secret = canary('upstream');
      const sql = 'INSERT INTO change_seq (id, seq) VALUES (1, $secret)';
      const options = { bind: { secret }, type: QueryTypes.INSERT } as const;
      const error = await sequelize.query(sql, options).catch((it: unknown) => it);
      expect(JSON.stringify(error)).to.include('INSERT');
      const { log, logged } = recordingLog();
      log.error('failed', { error, errors: [error], nested: { error: new Error('outer', { cause: error }) } });
      expect(logged.join('')).to.include('SequelizeUniqueConstraintError').and.not.to.include('INSERT');
      expect(secretsIn(logged.join(''))).to.deep.equal([]);
    });

    for (const Failure of [ConnectionError, ConnectionRefusedError]) {
      it(`I03 a ${Failure.name} is logged without the password of the connection string`, () => {
        const password = canary('password');
        const dsn = `postgres://llmp:${password}@db.internal/llmp?sslmode=require&password=${password}`;
        const cause = Object.assign(new Error(`cannot connect to ${dsn}`), { config: { password }, dsn });
        const { log, logged } = recordingLog();
        log.error(`failed: ${dsn}`, { error: new Failure(cause), config: { password, connectionString: dsn } });
        expect(logged.join('')).to.include('cannot connect to postgres://llmp:********@db.internal/llmp');
        expect(secretsIn(logged.join(''))).to.deep.equal([]);
      });
    }
  });

  for (const NODE_ENV of ['production', 'development', undefined]) {
    it(`I05 a body or path that cannot be decoded is refused in JSON without a stack trace, with NODE_ENV=${String(NODE_ENV)}`, async () => {
      const before = process.env.NODE_ENV;
      setNodeEnv(NODE_ENV);
      const own = await startDaemon(); // Express reads it when the app is created.
      setNodeEnv(before);
      for (const path of ['/manage/projects/%zz', '/manage/tokens/%c0%af', '/manage/projects/%zz?q=%zz']) {
        const answer = await rawRequest(own, { path });
        problemOf(answer, 400, 'invalid_request');
        expect(answer.text).not.to.match(/<|node_modules|\bat |URIError|\.js|%zz/);
      }
      for (const path of ['/manage/%zz', '/%zz', '/..%2f..%2fetc/passwd']) {
        const answer = await rawRequest(own, { path });
        problemOf(answer, 404, 'not_found');
        expect(answer.body).to.include({ error: 'no such path' });
      }
      await own.stop();
    });
  }

  describe('error texts of libraries and servers', () => {
    const WORDS = 'words-of-the-database-at-/var/lib/secret.db';
    const OPERATIONS: [method: string, path: string, body?: unknown][] = [
      ['GET', '/manage/projects'],
      ['GET', '/manage/tokens'],
      ['GET', `/manage/tokens/${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}`],
      ['POST', '/manage/projects', { name: 'x', api_key: canary('upstream') }],
      ['POST', '/manage/tokens/lookup', { token: mintSecret() }],
      ['POST', '/manage/cache/purge', { all: true }],
      ['GET', '/manage/migrations'],
      ['POST', '/manage/migrations/up', {}],
    ];

    for (const [what, error, status] of [
      ['the driver', new ConnectionError(new Error(WORDS)), 503],
      ['a defect', new TypeError(WORDS), 500],
    ] as const) {
      it(`I18 an error text of ${what} does not reach an operator: a constant message and the request ID do, and the log has the details`, async () => {
        for (const [method, path, body] of OPERATIONS) {
          const outage = makeDatabaseUnreachable(daemon, () => Promise.reject(error));
          const logged = daemon.logged.length;
          const answer = await daemon.manage(method, path, body);
          outage.end();
          expect(answer.status, path).to.be.oneOf([500, status]);
          expect((answer.body as WireProblem).error).to.be.oneOf(['temporarily unavailable', 'internal error']);
          expect(JSON.stringify([answer.body, ...answer.headers])).not.to.include('words-of');
          const line = daemon.logged
            .slice(logged)
            .find((it) => it.includes(String(answer.headers.get('x-request-id'))));
          expect(line, path).to.include('words-of');
        }
      });

      it(`I18 an error text of ${what} does not reach clients of /v1 or probes`, async () => {
        const outage = makeDatabaseUnreachable(daemon, () => Promise.reject(error));
        const answers = [
          await daemon.call(mintSecret()),
          ...(await Promise.all(['/ready', '/health', '/live'].map((path) => fetch(daemon.url + path)))),
        ];
        outage.end();
        expect(answers[0]?.status).to.equal(503);
        for (const answer of answers) {
          expect((await answer.text()) + JSON.stringify([...answer.headers]), answer.url).not.to.include('words-of');
        }
      });
    }
  });
});

describe('I: upstream errors', () => {
  const { stage, it } = staged();
  const WORDS = 'words-of-the-upstream';

  const SAID: Record<string, [code: string, answer: string]> = {
    'a refused key': [
      'upstream_key_rejected',
      `HTTP/1.1 401 ${WORDS}\r\nX-Why: ${WORDS}\r\nContent-Length: 21\r\n\r\n${WORDS}`,
    ],
    'a response that is not HTTP': ['upstream_malformed', `${WORDS}\r\n\r\n`],
    'an invalid header': ['upstream_malformed', `HTTP/1.1 200 OK\r\n${WORDS}\x01: ${WORDS}\r\n\r\n`],
    'two lengths': [
      'upstream_malformed',
      `HTTP/1.1 200 ${WORDS}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n${WORDS}`,
    ],
  };
  for (const [what, [code, said]] of Object.entries(SAID)) {
    it(`I18 the client gets a constant message, not the upstream's text: ${what}`, async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(said);
        exchange.fin();
      };
      const answer = await stage.ask(stage.get());
      expect({ status: answer.status, code: answer.json.code }).to.deep.equal({ status: 502, code });
      expect(answer.text + JSON.stringify(answer.fields)).not.to.include(WORDS);
    });
  }
});

function setNodeEnv(value: string | undefined): void {
  if (value === undefined) Reflect.deleteProperty(process.env, 'NODE_ENV');
  else process.env.NODE_ENV = value;
}
