import { randomBytes } from 'node:crypto';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { chunk, head, LAST_CHUNK } from '../support/raw.js';
import { expectRefusal, KEY_REJECTED, LIMIT_REACHED } from '../support/refusals.js';
import { extraResponseHeaders } from './support/extra-headers.js';
import { staged } from './support/fault-fixture.js';
import { type Exchange, ScriptedUpstream } from './support/upstream.js';

const listOf = (lines: string) =>
  lines
    .split('\r\n')
    .filter((line) => line !== '')
    .map((line) => line.split(/: (.*)/).slice(0, 2));

describe("C: an upstream's response is forwarded", () => {
  const { stage, it } = staged();

  const document = JSON.stringify({ data: 'x'.repeat(5_000) });
  const CODINGS: Record<string, Buffer> = {
    gzip: gzipSync(document),
    br: brotliCompressSync(document),
    zstd: randomBytes(3_000), // Only the client decompresses these.
    'gzip, br': brotliCompressSync(gzipSync(document)),
    identity: Buffer.from(document),
  };
  for (const [coding, body] of Object.entries(CODINGS)) {
    const FRAMINGS: [what: string, fields: string, onTheWire: Buffer][] = [
      ['with its length', `Content-Length: ${body.length}\r\n`, body],
      [
        'in chunks',
        'Transfer-Encoding: chunked\r\n',
        Buffer.from(chunk(body.toString('latin1')) + LAST_CHUNK, 'latin1'),
      ],
    ];
    for (const [framing, fields, onTheWire] of FRAMINGS) {
      it(`C19 a compressed body is forwarded byte for byte, ${framing}: ${coding}`, async () => {
        stage.upstream.script = (exchange) => {
          exchange.send(`HTTP/1.1 200 OK\r\nContent-Encoding: ${coding}\r\n${fields}\r\n`);
          exchange.send(onTheWire);
        };
        const answer = await stage.ask(stage.get({ 'Accept-Encoding': coding }));
        expect(answer.body.equals(body)).to.equal(true);
        expect(extraResponseHeaders(stage, answer)).to.have.deep.members(
          listOf(`Content-Encoding: ${coding}\r\n${fields}`),
        );
      });
    }
  }

  describe('and redirects are not followed', () => {
    const elsewhere = new ScriptedUpstream();
    before(() => elsewhere.listen());
    after(() => elsewhere.stop());
    for (const status of [301, 302, 303, 307, 308]) {
      it(`C26 a redirect to another host is forwarded, and that host is not contacted: ${status}`, async () => {
        const location = `Location: ${elsewhere.url}/v1/models\r\n`;
        stage.upstream.script = (exchange) => {
          exchange.respond(status, location, '"moved"');
        };
        for (const bytes of [stage.get(), stage.post('{}')]) {
          const answer = await stage.ask(bytes);
          expect(answer).to.include({ status, text: '"moved"' });
          expect(answer.all('location')).to.deep.equal([`${elsewhere.url}/v1/models`]);
        }
        expect(stage.upstream.exchanges).to.have.lengthOf(2);
        expect(elsewhere.received, 'connections elsewhere').to.be.empty;
      });
    }
  });

  it("C27 Location and Content-Location with the upstream's host are forwarded unchanged", async () => {
    const fields = `Location: ${stage.upstream.url}/v1/files/a?b=c\r\nContent-Location: //${stage.upstreamHost}/v1/files/a\r\n`;
    stage.upstream.script = (exchange) => {
      exchange.respond(201, fields);
    };
    const answer = await stage.ask(stage.post('{}'));
    expect(extraResponseHeaders(stage, answer)).to.have.deep.members([
      ...listOf(`Content-Type: application/json\r\n${fields}`),
      ['Content-Length', '11'],
    ]);
  });

  const REJECTIONS: Record<string, (key: string) => string> = {
    'with a length': (key) => `Content-Length: ${key.length}\r\n\r\n${key}`,
    'in chunks': (key) => `Transfer-Encoding: chunked\r\n\r\n${chunk(key)}${LAST_CHUNK}`,
    'that ends with its connection': (key) => `\r\n${key}`,
    'of which only a part arrives': (key) => `Content-Length: 9999\r\n\r\n${key}`,
  };
  for (const [what, rest] of Object.entries(REJECTIONS)) {
    it(`C28 a 401 to the project's key becomes 502 without its text, which could quote the key: ${what}`, async () => {
      const said = `Incorrect API key provided: ${stage.upstreamKey}`;
      stage.upstream.script = (exchange) => {
        const fields = `WWW-Authenticate: Bearer realm="theirs"\r\nX-Theirs: ${stage.upstreamKey}\r\nX-Request-ID: ${stage.upstreamKey}\r\n`;
        exchange.send(`HTTP/1.1 401 Unauthorized\r\n${fields}${rest(said)}`);
      };
      const answer = await stage.ask(stage.get());
      expectRefusal(answer, KEY_REJECTED);
      expect(answer.text).not.to.include('Incorrect');
      for (const name of ['www-authenticate', 'x-theirs', 'x-upstream-request-id'])
        expect(answer.all(name)).to.be.empty;
      await (await stage.upstream.only()).closed();
      expect(await stage.onlyRecord()).to.include({ outcome: 'upstream_error', code: 'upstream_key_rejected' });
    });
  }

  it("C29 a 429 of the provider is forwarded with its headers; it differs from the daemon's own", async () => {
    const fields = 'Retry-After: 20\r\nx-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 8.64s\r\n';
    const body = '{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}';
    stage.upstream.script = (exchange) => {
      exchange.respond(429, fields, body);
    };
    const capped = await stage.issue({ max_requests: 1 });
    const request = head('GET /v1/models', capped.token);
    const theirs = await stage.ask(request);
    expect(theirs).to.include({ status: 429, text: body });
    for (const [name, value] of listOf(fields)) expect(theirs.all(name!)).to.deep.equal([value]);
    expect(theirs.all('server-timing'), 'headers that only forwarded responses have').to.have.lengthOf(1);
    const ours = await stage.ask(request);
    expectRefusal(ours, LIMIT_REACHED);
    expect(ours.all('server-timing')).to.be.empty;
    expect(ours.all('retry-after')).to.be.empty;
    expect(stage.upstream.exchanges).to.have.lengthOf(1);
  });

  for (const status of [400, 403, 404, 500, 502, 503, 504, 529, 599, 999]) {
    it(`C30 a ${status} is forwarded, and the request is sent once`, async () => {
      stage.upstream.script = (exchange) => {
        exchange.respond(status, 'Retry-After: 7\r\nX-Theirs: a\r\n', '{"theirs":true}');
      };
      const answer = await stage.ask(stage.get());
      expect(answer).to.include({ status, text: '{"theirs":true}' });
      expect(extraResponseHeaders(stage, answer)).to.deep.equal(
        listOf('Content-Type: application/json\r\nContent-Length: 15\r\nRetry-After: 7\r\nX-Theirs: a\r\n'),
      );
      await stage.upstream.only();
      const outcome = status >= 500 ? 'upstream_error' : status >= 400 ? 'upstream_refused' : 'ok';
      expect(await stage.onlyRecord()).to.include({ outcome, status, code: null });
      expect(await stage.uses()).to.equal(1);
    });
  }

  describe('before the upload has ended', () => {
    const BYTES = 5_000_000;
    const piece = 'x'.repeat(50_000);
    const THEN: Record<string, (exchange: Exchange) => void> = {
      'continues to read': () => undefined,
      'stops reading': (exchange) => {
        exchange.socket.pause();
      },
      'closes the connection': (exchange) => {
        exchange.fin();
      },
    };
    const UPLOADS: [what: string, begin: () => string, rest: string][] = [
      [
        'with a length',
        () => stage.post('', { 'Content-Length': String(BYTES) }) + piece,
        piece.repeat(BYTES / piece.length - 1),
      ],
      [
        'in chunks',
        () => stage.post('', { 'Transfer-Encoding': 'chunked' }) + chunk(piece),
        chunk(piece).repeat(BYTES / piece.length - 1) + LAST_CHUNK,
      ],
    ];
    for (const [what, begin, rest] of UPLOADS) {
      for (const [then, act] of Object.entries(THEN)) {
        it(`C31 a 413 to an upload ${what}, after which the upstream ${then}: the client can read it and continue`, async () => {
          stage.upstream.script = (exchange) => {
            if (exchange.method === 'GET') {
              exchange.respond();
              return;
            }
            exchange.respond(413, '', '"too large for me"');
            act(exchange);
          };
          const client = await stage.client(begin());
          await client.seen('"too large for me"');
          client.send(rest);
          client.send(stage.get());
          const early = await client.response();
          expect(early).to.include({ status: 413, text: '"too large for me"' });
          expect((await client.response()).status, 'the next request on the same connection').to.equal(200);
          expect(client.wasReset).to.equal(false);
          const upload = stage.upstream.exchanges[0]!;
          await upload.closed();
          expect(upload.request.isComplete, 'the rest of the upload was not forwarded').to.equal(false);
        });
      }
    }
  });
});
