import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { shortGet } from '../../cli/connection/short-get.js';

const JSON_TYPE = 'Content-Type: application/json';

/** A server that sends `response` to each connection once it has a request, and then closes it. */
async function serverWith(response: string | Buffer, requests: string[] = []): Promise<{ server: Server; url: URL }> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (request) => {
      requests.push(request.toString('latin1'));
      socket.end(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/manage/tokens?limit=2`) };
}

async function answerTo(response: string | Buffer, init: Partial<Parameters<typeof shortGet>[1]> = {}) {
  const requests: string[] = [];
  const { server, url } = await serverWith(response, requests);
  try {
    const signal = AbortSignal.timeout(5_000);
    return { answer: await shortGet(url, { method: 'GET', redirect: 'error', signal, ...init }), requests };
  } finally {
    server.close();
  }
}

describe('a short GET request', () => {
  it('returns a response with its length, and sends the headers', async () => {
    const body = '[{"name":"é"}]';
    const { answer, requests } = await answerTo(
      `HTTP/1.1 200 OK\r\n${JSON_TYPE}\r\nLink: </manage/tokens?cursor=x>; rel="next"\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      { headers: { authorization: 'Bearer abc' } },
    );
    expect(answer).to.include({ ok: true, status: 200 });
    expect(answer?.headers.get('LINK')).to.equal('</manage/tokens?cursor=x>; rel="next"');
    expect(answer?.headers.get('x-none')).to.equal(null);
    expect(await answer?.json()).to.deep.equal([{ name: 'é' }]);
    expect(requests[0]).to.match(/^GET \/manage\/tokens\?limit=2 HTTP\/1\.1\r\nauthorization: Bearer abc\r\nhost: 127/);
    expect(requests[0]).to.match(/\r\nconnection: close\r\n\r\n$/);
  });

  it('returns an error with its status: the daemon must not be asked twice', async () => {
    const { answer } = await answerTo('HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}');
    expect(answer).to.include({ ok: false, status: 401 });
  });

  it('rejects when the body is read and is not JSON', async () => {
    const { answer } = await answerTo('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[[');
    const problem = await answer?.json().catch((error: unknown) => error);
    expect(problem).to.be.an.instanceOf(SyntaxError);
  });

  const leftToNode: Record<string, string | Buffer> = {
    nothing: '',
    'an incomplete head': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n',
    'an incomplete body': 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[]',
    'more than the body': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n[]',
    'no length': 'HTTP/1.1 200 OK\r\n\r\n[]',
    'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 2\r\n\r\n[]',
    chunks: 'HTTP/1.1 200 OK\r\nContent-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n',
    compression: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Encoding: gzip\r\n\r\n[]',
    'a redirect': 'HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n',
    'an interim response': 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]',
    'HTTP/1.0': 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n[]',
    'a folded header': 'HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\n[]',
    'a line feed alone': 'HTTP/1.1 200 OK\nContent-Length: 2\n\n[]',
    'a space before a colon': 'HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n[]',
    'a long head': `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(20_000)}\r\nContent-Length: 2\r\n\r\n[]`,
    TLS: Buffer.from([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x28]),
  };
  for (const [what, response] of Object.entries(leftToNode)) {
    it(`leaves ${what} to node:http`, async () => {
      expect((await answerTo(response)).answer).to.equal(undefined);
    });
  }

  it('leaves a response of 17 MB to node:http', async () => {
    const body = Buffer.alloc(17 * 1024 * 1024, ' ');
    const head = Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`);
    expect((await answerTo(Buffer.concat([head, body]))).answer).to.equal(undefined);
  });

  it('sends nothing if a header could add a line', async () => {
    const { answer, requests } = await answerTo('', { headers: { authorization: 'Bearer a\r\nx: y' } });
    expect(answer).to.equal(undefined);
    expect(requests).to.deep.equal([]);
  });

  it('returns a complete response without waiting for the end of the connection, and leaves one of unknown length at once', async () => {
    for (const [response, status] of [
      ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]', 200],
      ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n', undefined],
    ] as const) {
      const server = createServer((socket) => {
        socket.once('data', () => {
          socket.write(response.slice(0, 30));
          setImmediate(() => socket.write(response.slice(30)));
        });
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      const { signal } = new AbortController();
      expect((await shortGet(url, { method: 'GET', redirect: 'error', signal }))?.status).to.equal(status);
      server.close();
    }
  });

  it('ends when its signal is aborted, and throws the error of the connection without a server', async () => {
    const { server, url } = await serverWith('');
    server.removeAllListeners('connection');
    const controller = new AbortController();
    const waiting = shortGet(url, { method: 'GET', redirect: 'error', signal: controller.signal });
    controller.abort();
    expect(await waiting).to.equal(undefined);
    server.close();
    await once(server, 'close');
    const { signal } = new AbortController();
    const problem = await shortGet(url, { method: 'GET', redirect: 'error', signal }).catch((error: unknown) => error);
    expect(problem).to.have.property('code', 'ECONNREFUSED');
  });
});
