/** Which routes and models a token may use. The judge is what the provider has received completely. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { Allow } from '../../../daemon/api/vocabulary.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import type { Received } from '../../support/provider.js';
import { chunk, type Fields, head, LAST_CHUNK, type RawResponse, WEBSOCKET } from '../../support/raw.js';
import { Realtime } from '../../support/realtime.js';

const JSON_TYPE = { 'Content-Type': 'application/json' };

describe('routes and models', function () {
  this.timeout(30_000);
  const { scene, realtime } = Realtime.forSuite({ HTTP_CACHE_ENABLED: 'true', HTTP_CACHE_DEFAULT_TTL: '60' });
  /** Requests that have reached the provider with their whole body. */
  let completed: Received[] = [];
  beforeEach(() => {
    completed = [];
    scene.provider.answer = (_req, res, received) => {
      completed.push(received);
      res
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"model":"gpt-5-mini","usage":{"prompt_tokens":1}}');
    };
  });

  const restrict = async (allow: Allow, more: object = {}) => {
    scene.token = await scene.daemon.createToken(scene.project.id, { allow, ...more });
  };
  const send = (route: string, body: string | Buffer | null = null, fields: Fields = {}) => {
    const bytes = body === null ? Buffer.alloc(0) : Buffer.from(body as string);
    const length: Fields = body === null ? {} : { 'Content-Length': String(bytes.length), ...JSON_TYPE };
    return scene.send(
      Buffer.concat([
        Buffer.from(head(route, scene.secret, { 'Cache-Control': 'no-store', ...length, ...fields })),
        bytes,
      ]),
    );
  };
  const chat = (body: string, fields: Fields = {}) => send('POST /v1/chat/completions', body, fields);

  /** Checks a refusal, of which the provider got nothing, and that no use was drawn. */
  async function refused(answer: Promise<RawResponse>, status: number, code: string): Promise<Record<string, unknown>> {
    const [already, uses] = [completed.length, await scene.uses()];
    const got = await answer;
    expect({ status: got.status, code: got.json.code }, got.text).to.deep.equal({ status, code });
    if (status === 403) expect(got.header('x-should-retry')).to.equal('false');
    expect(completed.length, 'at the provider').to.equal(already);
    expect(await scene.uses()).to.equal(uses);
    return got.json;
  }
  const passed = async (answer: Promise<RawResponse>) => {
    const before = completed.length;
    const got = await answer;
    expect(got.status, got.text).to.equal(200);
    expect(completed).to.have.lengthOf(before + 1);
  };

  const form = (fields: readonly (readonly [string, string])[], boundary = 'BOUND') => {
    const parts = fields.map(([disposition, value]) => `--${boundary}\r\n${disposition}\r\n\r\n${value}\r\n`);
    return `${parts.join('')}--${boundary}--\r\n`;
  };
  const FORM_TYPE = { 'Content-Type': 'multipart/form-data; boundary=BOUND' };
  const named = (name: string) => `Content-Disposition: form-data; name="${name}"`;
  const FILE = [`${named('file')}; filename="a.mp3"\r\nContent-Type: audio/mpeg`, 'x\r\n-y\r\n--z'] as const;

  /** Each place where a model can be named. */
  const PLACES: Record<string, (model: string) => Promise<RawResponse>> = {
    model: (model) => chat(JSON.stringify({ messages: [], model })),
    'session.model': (model) => send('POST /v1/x', JSON.stringify({ session: { type: 'realtime', model } })),
    models: (model) => chat(JSON.stringify({ models: ['gpt-5-mini', model], model: 'gpt-5-mini' })),
    query: (model) => send(`POST /v1/listen?model=${model}`, '{}'),
    path: (model) => send(`POST /v1beta/models/${model}:generateContent`, '{}'),
    deployment: (model) => send(`POST /v1/openai/deployments/${model}/chat/completions?api-version=1`, '{}'),
    "a deployment's path in other letters": (model) =>
      send(`POST /v1/OpenAI/Deployments;x/${model}/chat/completions`, '{"model":"gpt-5-mini"}'),
    tools: (model) => chat(JSON.stringify({ model: 'gpt-5-mini', tools: [{ type: 'image_generation', model }] })),
    form: (model) => send('POST /v1/audio/transcriptions', form([FILE, [named('model'), model]]), FORM_TYPE),
    "Google's name": (model) => send('POST /v1beta/x', JSON.stringify({ model: `models/${model}` })),
    'chunked body': async (model) => {
      const body = JSON.stringify({ padding: ' '.repeat(200_000), model });
      const client = await scene.client(
        head('POST /v1/chat/completions', scene.secret, { 'Transfer-Encoding': 'chunked', ...JSON_TYPE }),
      );
      for (let at = 0; at < body.length; at += 50_000) client.send(chunk(body.slice(at, at + 50_000)));
      client.send(LAST_CHUNK);
      return client.response('POST');
    },
  };

  for (const [place, ask] of Object.entries(PLACES)) {
    it(`of a model named in ${place} are checked`, async () => {
      await restrict({ models: ['gpt-5-mini', 'claude-*'] });
      const { allowed } = await refused(ask('gpt-5'), 403, 'model_not_allowed');
      expect(allowed).to.deep.equal(['gpt-5-mini', 'claude-*']);
      await refused(ask('GPT-5-mini'), 403, 'model_not_allowed');
      await passed(ask('gpt-5-mini'));
      await passed(ask('claude-opus-4'));
      expect(await scene.uses()).to.equal(2);
    });
  }

  it('are checked for every place that names one', async () => {
    await restrict({ models: ['a'] });
    await refused(send('POST /v1/x?model=b', '{"model":"a"}'), 403, 'model_not_allowed');
    await refused(send('POST /v1/x?model=a&model=b', '{"model":"a"}'), 403, 'model_not_allowed');
    await refused(send('POST /v1/x?model=a', '{"model":"b"}'), 403, 'model_not_allowed');
    await refused(send('POST /v1/models/a:x', '{"model":"b"}'), 403, 'model_not_allowed');
    await refused(send('POST /v1/models/b:x', '{"model":"a"}'), 403, 'model_not_allowed');
    await passed(send('POST /v1/models/a:x?model=a', '{"model":"a","models":["a"]}'));
  });

  it('are refused if the request can be read in two ways', async () => {
    await restrict({ models: ['gpt-*'] });
    for (const body of [
      '{"model":"gpt-5","model":"gpt-5"}',
      '{"mod\\u0065l":"gpt-5"}',
      '{"Model":"gpt-5"}',
      '{"model":"gpt-5"',
      'model=gpt-5',
    ]) {
      await refused(chat(body), 400, 'invalid_request');
    }
    await refused(
      chat(gzipSync('{"model":"gpt-5"}').toString('latin1'), { 'Content-Encoding': 'gzip' }),
      415,
      'unsupported_media_type',
    );
    await refused(chat('{"model":"gpt-5"}', { 'Content-Type': 'text/plain' }), 415, 'unsupported_media_type');
    await refused(
      chat('{"model":"gpt-5"}', { 'Content-Type': ['application/json', 'text/plain'] }),
      400,
      'invalid_request',
    );
    await refused(send('POST /v1/x?mod%65l=gpt-5', '{}'), 400, 'invalid_request');
    await refused(send('POST /v1/x?Model=gpt-5', '{}'), 400, 'invalid_request');
    await refused(send('POST /v1/%ff?model=gpt-5', '{}'), 400, 'invalid_request');
    for (const fields of [
      [
        [named('model'), 'gpt-5'],
        [named('model'), 'gpt-5'],
      ],
      [[named('Model'), 'gpt-5']],
      [['Content-Disposition: form-data; name=model', 'gpt-5']],
      [["Content-Disposition: form-data; name*=utf-8''model", 'gpt-5']],
      [['Content-Disposition: form-data; name="mod%65l"', 'gpt-5']],
      [['Content-Disposition: form-data; name="x"; name="model"', 'gpt-5']],
      [
        ['Content-Disposition: form-data; filename="; name="; name="model"', 'other'],
        [named('model'), 'gpt-5'],
      ],
      [[`${named('x')}\r\n${named('model')}`, 'gpt-5']],
      [[`${named('x')}\r\n folded`, 'gpt-5']],
      [[`${named('model')}\r\nContent-Transfer-Encoding: base64`, 'Z3B0LTU=']],
      [[named('x'), `y\n--BOUND\n${named('model')}\n\nother`]],
    ] as const) {
      await refused(send('POST /v1/audio/transcriptions', form(fields), FORM_TYPE), 400, 'invalid_request');
    }
    const cut = form([FILE, [named('model'), 'gpt-5']]).slice(0, -6);
    await refused(send('POST /v1/audio/transcriptions', cut, FORM_TYPE), 400, 'invalid_request');
    await refused(send('POST /v1/x', `{"model":"gpt-5"}`, FORM_TYPE), 400, 'invalid_request');
  });

  it('are refused if the request asks for another method, also with a list of models or a cap only', async () => {
    for (const terms of [{ allow: { models: ['gpt-5-mini'] } }, { max_requests: 5 }]) {
      scene.token = await scene.daemon.createToken(scene.project.id, terms);
      for (const route of ['GET /v1beta/models/gemini-pro:generateContent', 'GET /v1/batches']) {
        const override = { 'X-HTTP-Method-Override': 'POST' };
        await refused(send(route, '{}', override), 400, 'invalid_request');
        await refused(send(route, null, override), 400, 'invalid_request');
        await refused(send(`${route}?%24httpMethod=POST`), 400, 'invalid_request');
        await refused(send(`${route}?$httpHeaders=X-HTTP-Method-Override:POST`), 400, 'invalid_request');
      }
    }
  });

  it('are those of a path in each form that a server may take it for', async () => {
    await restrict({ models: ['gpt-5-mini', '*-flash'] });
    for (const path of [
      '/v1/deployments/gpt-5;-flash/chat/completions',
      '/v1/deployments/gpt-5%3F-flash/chat/completions',
      '/v1/deployments%2F%2Fgpt-5/chat/completions',
      '/v1beta/models/gemini-pro;-flash:generateContent',
      '/v1beta/dynamic/gemini-pro:generateContent',
      '/v1/projects/p/locations/l/endpoints/123:generateContent',
    ]) {
      await refused(send(`POST ${path}`, '{"model":"gpt-5-mini"}'), 403, 'model_not_allowed');
    }
    await passed(send('POST /v1/projects/p/locations/l/endpoints/openapi/chat/completions', '{"model":"gpt-5-mini"}'));
  });

  it('need a model to be named where one runs', async () => {
    await restrict({ models: ['a'] });
    await refused(chat('{}'), 403, 'model_not_named');
    await refused(chat('{"model":null}'), 403, 'model_not_named');
    await refused(send('POST /v1/chat/completions'), 403, 'model_not_named');
    await refused(send('POST /v1/audio/transcriptions', form([FILE]), FORM_TYPE), 403, 'model_not_named');
    await refused(send('POST /v1/unknown', '{"engine":"b"}'), 403, 'model_not_named');
    await passed(send('GET /v1/models'));
    await passed(send('GET /v1/models/b'));
    await passed(send('POST /v1/files', form([FILE]), FORM_TYPE));
    await passed(send('POST /v1/responses/resp_1/cancel'));
  });

  it('are those of the token and those of the project', async () => {
    const project = `/manage/projects/${scene.project.id}`;
    await restrict({ models: ['a', 'b'] });
    await scene.daemon.manage('PATCH', project, { allow: { models: ['b', 'c'], routes: ['inference'] } });
    try {
      await refused(chat('{"model":"a"}'), 403, 'model_not_allowed');
      await refused(chat('{"model":"c"}'), 403, 'model_not_allowed');
      await refused(send('GET /v1/models'), 403, 'route_not_allowed');
      await passed(chat('{"model":"b"}'));
    } finally {
      await scene.daemon.manage('PATCH', project, { allow: null });
    }
    await passed(send('GET /v1/models'));
  });

  it('change from the next request on', async () => {
    await restrict({ models: ['a'] });
    await passed(chat('{"model":"a"}'));
    await scene.daemon.manage('PATCH', `/manage/tokens/${scene.token.id}`, { allow: { models: ['b'] } });
    expect((await chat('{"model":"a"}')).status).to.equal(403);
    await passed(chat('{"model":"b"}'));
    await scene.daemon.manage('PATCH', `/manage/tokens/${scene.token.id}`, { allow: null });
    await passed(chat('{"model":"a"}'));
  });

  it('are those of patterns and presets', async () => {
    await restrict({ routes: ['inference', 'GET /v1/models', '* /v1/files/*/content'] });
    await passed(chat('{"model":"a"}'));
    await passed(send('GET /v1/models'));
    await passed(send('GET /v1/models?limit=1'));
    await passed(send('GET /v1/files/f/content'));
    const { allowed, error } = await refused2('GET /v1/models/a');
    expect(allowed).to.deep.equal(['inference', 'GET /v1/models', '* /v1/files/*/content']);
    expect(JSON.stringify(error)).to.include('route');
    await refused2('HEAD /v1/models', true);
    await refused2('POST /v1/models');
    await refused2('GET /v1/files');
    await refused2('GET /v1/Models');
    await refused2('GET /v1/models/');
    await restrict({ routes: ['read'] });
    await passed(send('GET /v1/anything'));
    expect((await chat('{"model":"a"}')).status).to.equal(403);
    expect((await send('GET /v1/models', '{}')).status).to.equal(403);
    expect((await send('GET /v1/models', null, { 'X-HTTP-Method-Override': 'DELETE' })).status).to.equal(400);
    await restrict({ routes: ['GET /v1/a'] });
    expect((await send('GET /v1/%61')).status).to.equal(400);
    await restrict({ routes: ['GET /v1/*'] });
    await passed(send('GET /v1/%61'));

    async function refused2(route: string, isHead = false) {
      const answer = await scene.send(head(route, scene.secret), isHead ? 'HEAD' : 'GET');
      expect(answer.status, route).to.equal(403);
      if (isHead) return {};
      expect(answer.json.code).to.equal('route_not_allowed');
      return answer.json;
    }
  });

  describe('that escape', () => {
    const ESCAPES = [
      'POST /v1/realtime/client_secrets',
      'POST /v1/realtime/sessions',
      'POST /v1/realtimeapi/sessions',
      'POST /v1/auth_tokens',
      'POST /v1/realtime/calls',
      'POST /v1/batches',
      'POST /v1/batches/',
      'POST /v1/%62atches',
      'POST /v1/Batches',
      'POST /v1/batches%3Fx',
      'POST /v1/batches%20',
      'POST /v1/batch/jobs',
      'POST /v1/projects/p/locations/l/batchPredictionJobs',
      'POST /v1/fine_tuning/jobs',
      'GET /v1/fine_tuning/jobs',
      'POST /v1/evals',
      'POST /v1/evals/e/runs',
      'POST /v1/containers',
      'GET /v1/organization/usage',
      'POST /v1/messages/batches',
      'POST /v1beta/models/m:batchGenerateContent',
      'POST /v1beta/cachedContents',
    ];
    const body = '{"model":"m"}';

    it('are refused to a token with a cap, a list or limits, of its own or of its project', async () => {
      for (const terms of [
        { max_requests: 5 },
        { allow: { models: ['*'] } },
        { allow: { routes: ['all'] } },
        { allow: { routes: ['* *', 'POST *', 'contained', 'POST /v1*'] } },
        { limits: { concurrent: 5 } },
      ]) {
        scene.token = await scene.daemon.createToken(scene.project.id, terms);
        for (const route of ESCAPES) {
          await refused(route.startsWith('GET') ? send(route) : send(route, body), 403, 'route_escapes');
        }
      }
      scene.token = await scene.daemon.createToken(scene.project.id);
      for (const policies of [{ limits: { concurrent: 5 } }, { allow: { models: ['*'] } }]) {
        await scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, policies);
        await refused(send('POST /v1/batches', body), 403, 'route_escapes');
        await scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, { limits: null, allow: null });
      }
      for (const route of ESCAPES) await passed(route.startsWith('GET') ? send(route) : send(route, body));
    });

    it('are open to a token whose list names them', async () => {
      await restrict({ routes: ['POST /v1/batches', '* /v1/fine_tuning/*', 'POST *:batchGenerateContent'] });
      await passed(send('POST /v1/batches', body));
      await passed(send('GET /v1/fine_tuning/jobs'));
      await passed(send('POST /v1beta/models/m:batchGenerateContent', body));
      expect((await send('POST /v1/evals', body)).json.code).to.equal('route_escapes');
      await restrict({ routes: ['POST /v1/batches'], models: ['m'] });
      await refused(send('POST /v1/batches', body), 403, 'model_not_checkable');
      await restrict({ routes: ['POST /v1/batches'], models: ['m', '*'] });
      await passed(send('POST /v1/batches', body));
    });

    it('include responses in the background, however they are written', async () => {
      for (const terms of [{ max_requests: 5 }, { allow: { models: ['*'] } }]) {
        scene.token = await scene.daemon.createToken(scene.project.id, terms);
        const ask = (more: string, fields: Fields = {}) => send('POST /v1/responses', `{"model":"m"${more}}`, fields);
        await refused(ask(',"background":true'), 403, 'route_escapes');
        await refused(ask(',"background":1'), 403, 'route_escapes');
        await refused(ask(',"background":false,"background":true'), 400, 'invalid_request');
        await refused(ask(',"b\\u0061ckground":true'), 400, 'invalid_request');
        await refused(ask(',"Background":true'), 400, 'invalid_request');
        await refused(ask(`,"input":"${'x'.repeat(200_000)}","background":true`), 403, 'route_escapes');
        await refused(ask('', { 'Content-Encoding': 'gzip' }), 415, 'unsupported_media_type');
        await refused(send('POST /v1beta/interactions', '{"model":"m","background":true}'), 403, 'route_escapes');
        await passed(ask(',"background":false'));
        await passed(ask(',"metadata":{"background":true}'));
      }
      await passed(chat('{"model":"m","background":true}'));
    });

    it('are open with ESCAPES=allow', async () => {
      const open = await ProxyFixture.open({ ESCAPES: 'allow' });
      try {
        const { token } = await open.daemon.createToken(open.project.id, { max_requests: 5 });
        open.provider.answer = (_req, res) => {
          res.end('{}');
        };
        const answer = await open.send(head('POST /v1/batches', token, { 'Content-Length': '2' }) + '{}');
        expect(answer.status).to.equal(200);
      } finally {
        await open.close();
      }
    });
  });

  it('are checked before the cache', async () => {
    const cached = { 'Cache-Control': 'max-age=60' };
    await passed(chat('{"model":"b"}', cached));
    await restrict({ models: ['a'] });
    completed = [];
    await refused(chat('{"model":"b"}', cached), 403, 'model_not_allowed');
  });

  describe('of a large body', () => {
    const begin = async (bytes: string, length: number, secret = scene.secret) => {
      const client = await scene.client(
        head('POST /v1/chat/completions', secret, { 'Content-Length': String(length), ...JSON_TYPE }) + bytes,
      );
      return client;
    };

    it('are known before the provider has all of it, and the unit is free again', async () => {
      await restrict({ models: ['a'] }, { max_requests: 1 });
      for (const [body, code] of [
        [`{"x":"${'y'.repeat(300_000)}","model":"b"}`, 'model_not_allowed'],
        [`{"x":"${'y'.repeat(300_000)}"}`, 'model_not_named'],
        [`{"model":"a","x":"${'y'.repeat(300_000)}","model":"a"}`, 'invalid_request'],
        [`{"model":"a","x":"${'y'.repeat(300_000)}"`, 'invalid_request'],
      ] as const) {
        const client = await begin(body.slice(0, 200_000), body.length);
        await scene.reached(); // It is forwarded while it is read.
        client.send(body.slice(200_000));
        const answer = await client.response('POST');
        expect(answer.json.code).to.equal(code);
        expect(completed).to.deep.equal([]);
        expect(await scene.uses()).to.equal(0);
        scene.provider.received.length = 0;
        client.destroy();
      }
      await passed(chat('{"model":"a"}'));
      expect(await scene.uses()).to.equal(1);
      expect((await chat('{"model":"a"}')).json.code).to.equal('request_limit_reached');
    });

    it('hold its unit while it is read', async () => {
      await restrict({ models: ['a'] }, { max_requests: 1 });
      const body = `{"model":"a","x":"${'y'.repeat(300_000)}"}`;
      const client = await begin(body.slice(0, -1), body.length);
      await scene.reached();
      expect((await chat('{"model":"a"}')).json.code).to.equal('request_limit_reached');
      client.send(body.slice(-1));
      expect((await client.response('POST')).status).to.equal(200);
      expect(completed.map(({ body: { length } }) => length)).to.deep.equal([body.length]);
      expect(await scene.uses()).to.equal(1);
    });

    it('to which the provider responds before its end have used their unit', async () => {
      await restrict({ models: ['a'] }, { max_requests: 1 });
      const { answer } = scene.provider;
      scene.provider.server.prependOnceListener('request', (_req, res: ServerResponse) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n');
      });
      const client = await begin(`{"model":"a","x":"${'y'.repeat(200_000)}`, 300_000);
      await client.seen('data: {}\n\n');
      client.send('","model":"b');
      await client.closed;
      await scene.inFlight(0);
      expect(await scene.uses()).to.equal(1);
      scene.provider.answer = answer;
      expect((await chat('{"model":"a"}')).json.code).to.equal('request_limit_reached');
    });

    it('that the client breaks off count as forwarded, as without a list', async () => {
      await restrict({ models: ['a'] }, { max_requests: 1 });
      const client = await begin(`{"model":"a","x":"${'y'.repeat(200_000)}`, 300_000);
      await scene.reached();
      client.destroy();
      await scene.inFlight(0);
      expect(await scene.uses()).to.equal(1);
    });
  });

  describe('on a WebSocket', () => {
    const create = (more: object) => JSON.stringify({ type: 'response.create', input: [], ...more });

    it('are checked for each response.create of the Responses API', async () => {
      for (const message of [
        create({ model: 'b' }),
        create({ response: { model: 'b' } }),
        create({ response: { model: 'b' }, model: 'a' }),
        create({}),
        create({ model: 'a', background: true }),
        create({ response: { model: 'a', background: true } }),
        '{"type":"response.create","model":"b","model":"a"}',
        '{"type":"response.create","mod\\u0065l":"a"}',
        '{"type":"session.update","session":{"model":"b"}}',
      ]) {
        await restrict({ models: ['a'] });
        const { client, socket } = await realtime.begin(scene.daemon.url, scene.secret, { target: '/v1/responses' });
        const arrived: string[] = [];
        socket.on('message', (data: Buffer) => arrived.push(data.toString()));
        const closed = once(client, 'close');
        client.send(create({ model: 'a' }));
        await once(socket, 'message');
        socket.send(JSON.stringify({ type: 'response.created', response: {} }));
        socket.send(JSON.stringify({ type: 'response.completed', response: {} }));
        client.send(message);
        expect((await closed)[0], message).to.be.oneOf([1007, 1008]);
        expect(arrived).to.deep.equal([create({ model: 'a' })]);
        expect(await scene.uses()).to.equal(1);
      }
    });

    it('are checked however the path of the Responses API is written', async () => {
      for (const target of ['/v1/Responses', '/v1/responses;x', '/v1/responses/']) {
        await restrict({ models: ['a'] });
        const { client, socket } = await realtime.begin(scene.daemon.url, scene.secret, { target });
        let arrived = 0;
        socket.on('message', () => (arrived += 1));
        const closed = once(client, 'close');
        client.send(create({ model: 'b' }));
        expect((await closed)[0], target).to.equal(1008);
        expect(arrived, target).to.equal(0);
      }
      scene.token = await scene.daemon.createToken(scene.project.id, { max_requests: 5 });
      const { client } = await realtime.begin(scene.daemon.url, scene.secret, { target: '/v1/%72esponses' });
      const closed = once(client, 'close');
      client.send(create({ model: 'b', background: true }));
      expect((await closed)[0]).to.equal(1008);
    });

    it('change from the next message on', async () => {
      await restrict({ models: ['a'] });
      const { client, socket } = await realtime.begin(scene.daemon.url, scene.secret, { target: '/v1/responses' });
      client.send(create({ model: 'a' }));
      await once(socket, 'message');
      await scene.daemon.manage('PATCH', `/manage/tokens/${scene.token.id}`, { allow: { models: ['b'] } });
      const arrived: string[] = [];
      socket.on('message', (data: Buffer) => arrived.push(data.toString()));
      socket.send(JSON.stringify({ type: 'response.completed', response: {} }));
      const closed = once(client, 'close');
      client.send(create({ model: 'a' }));
      await closed;
      expect(arrived).to.deep.equal([]);
    });

    it('of other APIs cannot be checked, unless all models are allowed', async () => {
      await restrict({ models: ['gpt-realtime'] });
      const handshake = (target: string) => scene.send(head(`GET ${target}`, scene.secret, WEBSOCKET));
      await refused(handshake('/v1/realtime?model=gpt-realtime'), 403, 'model_not_checkable');
      await restrict({ models: ['*'] });
      const { client } = await realtime.begin(scene.daemon.url, scene.secret);
      client.close();
      await restrict({ routes: ['read'] });
      await refused(handshake('/v1/realtime?model=gpt-realtime'), 403, 'route_not_allowed');
      await restrict({ routes: ['inference'] });
      await realtime.begin(scene.daemon.url, scene.secret);
    });
  });

  it('are refused in the form that the client reads', async () => {
    await restrict({ models: Array.from({ length: 30 }, (_, n) => `m${n}`) });
    const list = Array.from({ length: 20 }, (_, n) => `m${n}`);
    const anthropic = await chat('{"model":"x"}', { 'anthropic-version': '2023-06-01' });
    expect(anthropic.json).to.deep.include({ type: 'error', code: 'model_not_allowed', allowed: list });
    const google = await chat('{"model":"x"}', { 'User-Agent': 'GeminiCLI/1.0' });
    const { error } = google.json as { error: { details: { metadata?: { allowed?: string } }[] } };
    expect(error.details[0]?.metadata?.allowed).to.equal(list.join(', '));
    const sdk = await chat('{"model":"x"}', { 'User-Agent': 'OpenAI/JS 6.0.0', 'X-Stainless-Lang': 'js' });
    expect(sdk.json).to.deep.include({ code: 'model_not_allowed', allowed: list });
  });
});
