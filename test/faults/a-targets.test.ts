import { expect } from 'chai';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { head } from '../support/raw.js';
import { expectRefusal, MALFORMED, METHOD_NOT_ALLOWED, URI_TOO_LONG } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';

const LONGEST = 8 * 1024;

describe('A: targets and methods', () => {
  const { stage, it } = staged();

  it('A08 a target of 8 KiB is forwarded unchanged; one byte more gets 414', async () => {
    const longest = '/v1/models?'.padEnd(LONGEST, 'a');
    expect((await stage.ask(stage.get({}, longest))).status).to.equal(200);
    expect((await stage.upstream.only()).target).to.equal(longest);
    expectRefusal(await stage.ask(stage.get({}, `${longest}a`)), URI_TOO_LONG);
    expect(await stage.uses()).to.equal(1);
  });

  it('A08 a request with 100 headers is forwarded', async () => {
    expect((await stage.ask(stage.get({ 'X-A': Array<string>(98).fill('b') }))).status).to.equal(200);
    expect((await stage.upstream.only()).all('x-a')).to.have.lengthOf(98);
  });

  const REFUSED = {
    A23: ['http://evil.example/v1/models', 'https://evil.example/v1/models', 'HTTP://llmp.test/v1/models'],
    A24: ['http://llmp.test/manage/projects', 'http://llmp.test/live'],
    A25: [
      '//evil.example/v1/models',
      '/v1//models',
      '/v1/../manage/projects',
      '/v1/models/..',
      '/v1/./models',
      '/v1/%2e%2e/manage/projects',
      '/v1/%2E%2e/manage/projects',
      '/v1/.%2e/manage/projects',
      '/v1/..;/manage/projects',
      '/v1/..;x=y/manage/projects',
      '/v1\\..\\manage\\projects',
      '/v1/files\\..\\models',
      '/v1/models#top',
      '/v1#/../manage/projects',
      '/v1?x#y',
      '/v1/%zz',
      '/v1/%2',
      '/v1/caf\xe9',
    ],
    A26: ['*', 'v1/models', 'admin', 'llmp.test:80', '?x=/v1/models'],
  };
  // Targets that a server would read as a path outside of /v1 if it decodes the path first, once or several times.
  const WAYS_OUT = [
    '/v1/..%2f..%2f',
    '/v1/..%2F..%2Fmanage/projects',
    '/v1/..%2f',
    '/v1/.%2fmodels',
    '/v1/%2e%2e%2fmanage',
    '/v1/%2e%2e%2f%2e%2e%2f',
    '/v1/.%2e%2F',
    '/v1/x/..%2f..',
    '/v1/x%2f..%2f..%2fmanage',
    '/v1/x%2f..',
    '/v1/x%2f.%2e?a=b',
    '/v1/..%5c..%5c',
    '/v1/..%5Cmanage',
    '/v1/x%5c..%5c..%5cmanage',
    '/v1/%2e%2e%5c',
    '/v1/..%2f..%5cmanage',
    '/v1/..;%2fmanage',
    '/v1/..%3bx%2fmanage',
    '/v1/..%3Bx/manage',
    '/v1/..%3f/manage',
    '/v1/..%23',
    '/v1/..%00/manage',
    '/v1/..%20/manage',
    '/v1/..%09%2fmanage',
    '/v1/%252e%252e/manage',
    '/v1/%252e%252e%252fmanage',
    '/v1/..%252f..%252f',
    '/v1/..%255c',
    '/v1/..%25%32%66',
    '/v1/..%25252fmanage',
    '/v1/x%252f..%252f',
    '/v1/%c0%ae%c0%ae/manage',
    '/v1/..%c0%afmanage',
    '/v1/..%C1%9Cmanage',
    '/v1/%e0%80%ae%e0%80%ae/manage',
  ];
  const SERVED_AS_THEY_ARE = [
    '/v1/',
    '/v1',
    '/v1/files/a%2Fb',
    '/v1/models/org%2Fname',
    '/v1/models/ft:gpt-4o:org%2fname::id%3Ba',
    '/v1/files/https%3A%2F%2Fexample.com%2Fa%2Fb.txt',
    '/v1/files/a%5Cb',
    '/v1/files/a%252Fb',
    '/v1/files/a..%2fb',
    '/v1/files/%2e%2e.txt',
    '/v1/files/..a%2f...%2f..b',
    '/v1/files/100%25',
    '/v1/files/%C3%A0%E2%82%AC',
    '/v1/files/%ff',
    '/v1/a..b',
    '/v1/...',
    "/v1/~a!$&'()*+,;=:@",
    '/v1/m?a=/../..//b%2e&c=%zz',
  ];
  for (const [id, targets] of Object.entries(REFUSED)) {
    for (const target of targets) {
      it(`${id} ${target} gets 400, the connection closes, and nothing is forwarded`, async () => {
        const client = await stage.client(stage.get({}, target) + stage.get({}, '/v1/smuggled'));
        expectRefusal(await client.response(), MALFORMED);
        await client.closed;
        expect(client.pending.toString()).to.equal('');
        await stage.expectNothingSpent();
      });
    }
  }

  for (const target of WAYS_OUT) {
    it(`A25 ${target} gets 400, as a request and as a WebSocket, and nothing is forwarded`, async () => {
      expectRefusal(await stage.ask(stage.get({}, target)), MALFORMED);
      const websocket = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' };
      expectRefusal(await stage.ask(head(`GET ${target}`, stage.secret, websocket)), MALFORMED);
      await stage.expectNothingSpent();
    });
  }

  for (const target of SERVED_AS_THEY_ARE) {
    it(`A25 ${target} reaches the upstream byte for byte`, async () => {
      expect((await stage.ask(stage.get({}, target))).status).to.equal(200);
      expect((await stage.upstream.only()).target).to.equal(target);
    });
  }

  it('A25 /v1%2fmodels is not under /v1: 404, and nothing is forwarded', async () => {
    expect((await stage.ask(stage.get({}, '/v1%2fmodels'))).status).to.equal(404);
    await stage.expectNothingSpent();
  });

  it('A24 A25 no other spelling of /manage is served, even with the management token', async () => {
    for (const target of [
      'http://llmp.test/manage/projects',
      '//llmp.test/manage/projects',
      '/v1/../manage/projects',
      '/live/../manage/projects',
      '/live/%2e%2e/manage/projects',
      '/manage//projects',
      '/manage/./projects',
      '/manage%2fprojects',
      '/%6danage/projects',
      '/MANAGE/projects',
      '/manage/projects/',
      '\\manage\\projects',
    ]) {
      const answer = await stage.ask(head(`GET ${target}`, MANAGEMENT_TOKEN));
      expect(answer.status, target).to.be.oneOf([400, 404]);
    }
    expect((await stage.ask(head('GET /manage/projects', null))).status).to.equal(401);
    await stage.expectNothingSpent();
  });

  it('A26 OPTIONS */x gets 400', async () => {
    const client = await stage.client(head('OPTIONS */x', stage.secret));
    expectRefusal(await client.response(), MALFORMED);
    await client.closed;
  });

  it('A27 OPTIONS * gets 204; it is neither forwarded nor counted', async () => {
    for (const request of [head('OPTIONS *', null), head('OPTIONS *', stage.secret)]) {
      expect(await stage.ask(request)).to.include({ status: 204, text: '' });
    }
    await stage.expectNothingSpent();
  });

  it('A34 header names that could be read as other headers, or as object properties, do not reach the upstream', async () => {
    const names = ['Content_Length', 'X_Forwarded_For', 'Transfer_Encoding', '__proto__', 'constructor', 'prototype'];
    const request = stage.post('hello', { 'X-A': 'b' }).replace('X-A', `${names.join(': 500\r\n')}: 500\r\nX-A`);
    expect((await stage.ask(request)).status).to.equal(200);
    const exchange = await stage.upstream.only();
    for (const name of names) expect(exchange.all(name), name).to.deep.equal([]);
    expect(exchange.all('x-a')).to.deep.equal(['b']);
    expect(exchange.request.body.toString()).to.equal('hello');
  });

  it('A28 CONNECT gets 405, bytes after it are not tunnelled, and the connection closes', async () => {
    const client = await stage.client(head('CONNECT evil.example:443', stage.secret));
    expectRefusal(await client.response(), METHOD_NOT_ALLOWED);
    client.send(stage.get({}, '/v1/smuggled'));
    await client.closed;
    expect(client.pending.toString()).to.equal('');
    await stage.expectNothingSpent();
    const record = { method: 'CONNECT', path: '', status: 405, outcome: 'refused', code: 'method_not_allowed' };
    expect(await stage.onlyRecord()).to.include({ ...record, clientIp: '127.0.0.1' });
  });

  it('A09 a request that the parser rejects leaves a record like any other refusal', async () => {
    await stage.ask('GET /v1/models HTTP/1.1\r\nHost: a\r\nbroken line\r\n\r\n');
    const record = { method: '', path: '', status: 400, outcome: 'refused', code: 'malformed_request' };
    expect(await stage.onlyRecord()).to.include({ ...record, tokenId: null, clientIp: '127.0.0.1' });
  });

  it('A28 A29 a 405 lists the allowed methods', async () => {
    for (const method of ['TRACE', 'CONNECT']) {
      const answer = await stage.ask(head(`${method} /v1/models`, stage.secret));
      expectRefusal(answer, METHOD_NOT_ALLOWED);
      expect(answer.header('allow')).to.equal('GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS');
    }
  });

  it('A28 the daemon survives a CONNECT whose sender resets the connection', async () => {
    const client = await stage.client(head('CONNECT evil.example:443', stage.secret));
    await client.seen('method_not_allowed');
    client.socket.resetAndDestroy();
    await client.closed;
    expect((await stage.ask(stage.get())).status).to.equal(200);
  });

  it('A29 TRACE reflects nothing, on /v1 and elsewhere', async () => {
    const fields = { Cookie: 'session=a-cookie', 'X-Marker': 'a-marker' };
    for (const target of ['/v1/models', '/live', '/manage/projects', '/nothing', '*']) {
      const client = await stage.client(head(`TRACE ${target}`, MANAGEMENT_TOKEN, fields));
      const answer = await client.response();
      expect(answer.status, target).to.be.within(400, 405);
      const bytes = JSON.stringify(answer.fields) + answer.text;
      for (const sent of ['a-cookie', 'a-marker', MANAGEMENT_TOKEN]) expect(bytes).not.to.include(sent);
    }
    await stage.expectNothingSpent();
  });
});
