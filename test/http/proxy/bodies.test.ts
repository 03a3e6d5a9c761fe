import { createHash, randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { chunk, type Fields, head, LAST_CHUNK } from '../../support/raw.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

describe('bodies', () => {
  const scene = ProxyFixture.forSuite();

  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
  const request = (fields: Fields, body: Buffer) =>
    Buffer.concat([Buffer.from(head('POST /v1/echo', scene.secret, fields)), body]);
  const inChunks = (body: Buffer, size: number) => {
    const pieces: Buffer[] = [];
    for (let at = 0; at < body.length; at += size)
      pieces.push(Buffer.from(chunk(body.toString('latin1', at, at + size)), 'latin1'));
    return Buffer.concat([...pieces, Buffer.from(LAST_CHUNK)]);
  };

  const BODIES: Record<string, [fields: Fields, body: Buffer]> = {
    'a JSON document': [
      { 'Content-Type': 'application/json' },
      Buffer.from('{"model":"gpt", "a":"wörld\\u0000 🙂"}\n'),
    ],
    'an empty body': [{}, Buffer.alloc(0)],
    'a multipart upload of several MB': [
      { 'Content-Type': 'multipart/form-data; boundary=b' },
      Buffer.concat([Buffer.from('--b\r\n\r\n'), randomBytes(5_000_000), Buffer.from('\r\n--b--\r\n')]),
    ],
    'a body compressed by the client': [{ 'Content-Encoding': 'gzip' }, gzipSync('{"model":"gpt"}')],
  };
  for (const [what, [fields, body]] of Object.entries(BODIES)) {
    it(`forward ${what} byte for byte, both ways`, async () => {
      const answer = await scene.send(request({ ...fields, 'Content-Length': String(body.length) }, body));
      const { body: arrived, headers } = scene.provider.received[0]!;
      expect(digest(arrived)).to.equal(digest(body));
      expect(headers['content-length']).to.equal(String(body.length));
      expect(headers['content-encoding']).to.equal(fields['Content-Encoding']);
      expect(digest(answer.body)).to.equal(digest(body));
    });
  }

  it('forward a chunked upload byte for byte', async () => {
    const body = randomBytes(1_000_000);
    const answer = await scene.send(request({ 'Transfer-Encoding': 'chunked' }, inChunks(body, 9_999)));
    expect(digest(scene.provider.received[0]!.body)).to.equal(digest(body));
    expect(digest(answer.body)).to.equal(digest(body));
  });

  it('forward an empty chunked upload', async () => {
    expect((await scene.send(scene.post({ 'Transfer-Encoding': 'chunked' }, LAST_CHUNK))).text).to.equal('');
    expect(scene.provider.received[0]!.body).to.have.lengthOf(0);
  });

  const ANSWERS: Record<string, { fields: Record<string, string>; body: Buffer }> = {
    'audio of several MB': { fields: { 'Content-Type': 'audio/mpeg' }, body: randomBytes(5_000_000) },
    'a compressed response': {
      fields: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
      body: gzipSync('{"data":[]}'),
    },
  };
  for (const [what, { fields, body }] of Object.entries(ANSWERS)) {
    for (const length of [{ 'Content-Length': String(body.length) }, {}]) {
      it(`forward ${what} byte for byte, ${'Content-Length' in length ? 'with its length' : 'in chunks'}`, async () => {
        scene.provider.answer = (_req, res) => {
          res.writeHead(200, { ...fields, ...length });
          res.write(body.subarray(0, 10));
          res.end(body.subarray(10));
        };
        const answer = await scene.get();
        expect(digest(answer.body)).to.equal(digest(body));
        expect(answer.header('content-encoding')).to.equal(fields['Content-Encoding']);
        expect(answer.header('content-length')).to.equal(length['Content-Length']);
      });
    }
  }
});
