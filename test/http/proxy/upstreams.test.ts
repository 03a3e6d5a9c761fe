/** Projects with a provider of their own. */
import { type AddressInfo, createServer, type Server } from 'node:net';
import { expect } from 'chai';
import type { WireProject } from '../../../daemon/api/contract.js';
import { canary } from '../../support/canaries.js';
import { bodyOf, problemOf } from '../../support/management.js';
import { perSuite } from '../../support/per-test.js';
import { startProvider } from '../../support/provider.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { head } from '../../support/raw.js';

describe('the upstream of a project', () => {
  const scene = ProxyFixture.forSuite();
  const own = perSuite(startProvider);

  beforeEach(() => {
    own.received.length = 0;
    own.answer = undefined;
  });

  const KEY = canary('upstream');
  let names = 0;
  const create = (fields: object) =>
    scene.daemon.manage('POST', '/manage/projects', { name: `own ${(names += 1)}`, api_key: KEY, ...fields });
  const created = async (fields: object) => bodyOf<WireProject>(create(fields), 201);
  const change = (id: string, fields: object) => scene.daemon.manage('PATCH', `/manage/projects/${id}`, fields);
  const secretOf = async ({ id }: WireProject) => (await scene.daemon.createToken(id)).token;

  it('gets the requests of its tokens only, with its key', async () => {
    own.answer = (_req, res) => void res.writeHead(200).end('{}');
    const project = await created({ upstream_base_url: `${own.url}/base/v1/` });
    expect(project).to.include({ upstream_base_url: `${own.url}/base`, upstream_auth: 'bearer' });
    expect((await scene.get(await secretOf(project))).status).to.equal(200);
    expect(own.received.map(({ url, headers }) => [url, headers.authorization, headers.host])).to.deep.equal([
      ['/base/v1/models', `Bearer ${KEY}`, new URL(own.url).host],
    ]);
    expect(scene.provider.received).to.deep.equal([]);
    await scene.get();
    expect(scene.provider.received).to.have.lengthOf(1);
    expect(own.received).to.have.lengthOf(1);
  });

  it('gets the key in the header that the project names, and in no other', async () => {
    for (const auth of ['x-api-key', 'api-key', 'x-goog-api-key'] as const) {
      const project = await created({ upstream_base_url: own.url, upstream_auth: auth });
      await scene.get(null, { [auth]: await secretOf(project) });
      const { headers } = own.received.at(-1)!;
      expect(headers).to.include({ [auth]: KEY });
      expect(headers).not.to.have.property('authorization');
      expect(JSON.stringify(headers).split(KEY)).to.have.lengthOf(2);
    }
  });

  it('does not get a prefix twice that the client has sent, as the SDK of Groq does', async () => {
    const project = await created({ upstream_base_url: `${own.url}/v1/openai` });
    const secret = await secretOf(project);
    await scene.send(head('GET /v1/openai/v1/models', secret));
    await scene.send(head('GET /v1/openaix/models', secret));
    expect(own.received.map(({ url }) => url)).to.deep.equal(['/v1/openai/v1/models', '/v1/openai/v1/openaix/models']);
  });

  it('changes with the next request', async () => {
    const project = await created({});
    const secret = await secretOf(project);
    await scene.get(secret);
    await bodyOf(change(project.id, { upstream_base_url: own.url, api_key: KEY }));
    await scene.get(secret);
    await bodyOf(change(project.id, { upstream_base_url: null, api_key: KEY }));
    await scene.get(secret);
    expect([scene.provider.received.length, own.received.length]).to.deep.equal([2, 1]);
  });

  describe('keeps its key', () => {
    it('when the base URL changes to another origin: the change needs a key', async () => {
      const project = await created({});
      const secret = await secretOf(project);
      problemOf(await change(project.id, { upstream_base_url: own.url }), 400, 'key_required');
      problemOf(
        await change(project.id, { upstream_base_url: own.url, upstream_auth: 'api-key' }),
        400,
        'key_required',
      );
      await scene.get(secret);
      expect([scene.provider.received.length, own.received.length]).to.deep.equal([1, 0]);
      await bodyOf(change(project.id, { upstream_base_url: own.url, api_key: canary('upstream') }));
      problemOf(await change(project.id, { upstream_base_url: null }), 400, 'key_required');
    });

    it('but not when only the path or the header changes', async () => {
      const project = await created({ upstream_base_url: own.url });
      const changed = await bodyOf<WireProject>(
        change(project.id, { upstream_base_url: `${own.url}/api`, upstream_auth: 'x-api-key' }),
      );
      expect(changed).to.include({ upstream_base_url: `${own.url}/api`, upstream_auth: 'x-api-key' });
      // The default is the same origin.
      await bodyOf(change((await created({})).id, { upstream_base_url: `${scene.provider.url}/api` }));
    });
  });

  it('has its changes in the audit log, with the value before and after', async () => {
    const project = await created({ upstream_base_url: own.url });
    await bodyOf(change(project.id, { upstream_base_url: `${own.url}/api`, upstream_auth: 'api-key' }));
    problemOf(await change(project.id, { upstream_base_url: null }), 400, 'key_required');
    const data = await bodyOf<{ action: string; outcome: string; details: object }[]>(
      scene.daemon.manage('GET', `/manage/audit?project_id=${project.id}&limit=3`),
    );
    expect(data.map(({ action, outcome, details }) => ({ action, outcome, details }))).to.deep.equal([
      {
        action: 'project.update',
        outcome: 'denied',
        details: {
          refused: 'the base URL leads to another host, which must not get the stored key: give api_key, too',
        },
      },
      {
        action: 'project.update',
        outcome: 'success',
        details: { upstream_base_url: [own.url, `${own.url}/api`], upstream_auth: ['bearer', 'api-key'] },
      },
      { action: 'project.create', outcome: 'success', details: { name: project.name, upstream_base_url: own.url } },
    ]);
  });

  for (const [base, why] of [
    ['http://api.example.com', 'must be an https URL: http is only accepted for localhost'],
    ['https://user:pass@api.example.com', 'without credentials'],
    ['https://api.example.com/?a=b', 'without credentials, query'],
    ['https://169.254.169.254', 'metadata'],
    ['https://[fd00:ec2::254]', 'metadata'],
    ['https://[::ffff:169.254.169.254]', 'metadata'],
    ['https://metadata.google.internal', 'metadata'],
    ['ftp://api.example.com', 'https URL'],
    ['api.example.com', 'https URL'],
  ] as const) {
    it(`cannot be ${base}`, async () => {
      expect(problemOf(await create({ upstream_base_url: base }), 400, 'invalid_request')).to.include(why);
    });
  }

  it('can only have a host that UPSTREAM_ALLOWED_HOSTS allows', async () => {
    const narrow = await ProxyFixture.open({ UPSTREAM_ALLOWED_HOSTS: 'api.openai.com,*.example.com' });
    const with_ = (base: string) =>
      narrow.daemon.manage('POST', '/manage/projects', { name: base, api_key: KEY, upstream_base_url: base });
    for (const base of ['https://api.openai.com', 'https://a.example.com']) await bodyOf(with_(base), 201);
    for (const base of ['https://example.com', 'https://evil-example.com', 'https://api.openai.com.evil.com']) {
      expect(problemOf(await with_(base), 400, 'invalid_request')).to.include('UPSTREAM_ALLOWED_HOSTS');
    }
    await narrow.close();
  });

  it('has connections of its own: one that is frozen delays no other', async () => {
    const narrow = await ProxyFixture.open({ UPSTREAM_CONNECTIONS: '2' });
    const frozen: Server = createServer(() => undefined);
    await new Promise<void>((resolve) => frozen.listen(0, '127.0.0.1', resolve));
    const base = `http://127.0.0.1:${(frozen.address() as AddressInfo).port}`;
    const project = await bodyOf<WireProject>(
      narrow.daemon.manage('POST', '/manage/projects', { name: 'frozen', api_key: KEY, upstream_base_url: base }),
      201,
    );
    const secret = (await narrow.daemon.createToken(project.id)).token;
    // More than it has connections.
    const waiting = await Promise.all(
      Array.from({ length: 5 }, () =>
        narrow.client(`GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\n\r\n`),
      ),
    );
    await narrow.inFlight(5);
    for (let n = 0; n < 5; n++) expect((await narrow.get()).status).to.equal(200);
    for (const client of waiting) client.destroy();
    await narrow.inFlight(0);
    frozen.close();
    await narrow.close();
  });
});

describe('PROXY_PREFIXES', () => {
  it('are forwarded by the same rules as /v1, with everything below them, and nothing else', async () => {
    const scene = await ProxyFixture.open();
    scene.provider.answer = (_req, res) => void res.writeHead(200).end('{}');
    for (const [target, status] of [
      ['/v1beta/models/gemini-2.0-flash:generateContent', 200],
      ['/v1beta', 200],
      ['/openai/deployments/gpt/chat/completions?api-version=2024-10-21', 200],
      ['/v1beta2/models', 404],
      ['/v1betamodels', 404],
      ['/openai.json', 404],
      ['/V1beta/models', 404],
      ['/v1beta/../v1/models', 400],
      ['/v1beta/%2e%2e/manage/tokens', 400],
      ['/v1beta/..;/manage', 400],
      ['/v1beta//models', 400],
      ['/v1beta/models?key=AIza', 401],
    ] as const) {
      expect((await scene.send(head(`GET ${target}`, scene.secret))).status, target).to.equal(status);
    }
    expect(scene.provider.received.map(({ url }) => url)).to.deep.equal([
      '/v1beta/models/gemini-2.0-flash:generateContent',
      '/v1beta',
      '/openai/deployments/gpt/chat/completions?api-version=2024-10-21',
    ]);
    expect((await scene.send(head('GET /v1beta/models', null))).status).to.equal(401);
    await scene.close();
  });

  it('can be others, with a dot that stands for itself', async () => {
    const scene = await ProxyFixture.open({ PROXY_PREFIXES: '/v1.5,/api/llm' });
    scene.provider.answer = (_req, res) => void res.writeHead(200).end('{}');
    for (const [target, status] of [
      ['/v1.5/models', 200],
      ['/v1x5/models', 404],
      ['/api/llm/chat', 200],
      ['/api/other', 404],
      ['/v1/models', 404],
    ] as const) {
      expect((await scene.send(head(`GET ${target}`, scene.secret))).status, target).to.equal(status);
    }
    await scene.close();
  });
});
