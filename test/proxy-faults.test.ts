import { expect } from 'chai';
import { startRawProvider } from './support/raw.js';
import { type Expected, expectRefusal, UNREACHABLE, UPSTREAM_MALFORMED } from './support/refusals.js';
import { Scene } from './support/scene.js';

// Faults that need an upstream of their own; those of a working provider are in proxy.test.ts.
describe('a request on /v1: 7 forward: the upstream', () => {
  const FAULTS: [what: string, says: string | null, expected: Expected][] = [
    ['closes without an answer', null, UNREACHABLE],
    ['closes within the head', 'HTTP/1.1 200 OK\r\nContent-', UNREACHABLE],
    ['does not speak HTTP', 'SSH-2.0-OpenSSH_9.6\r\n', UPSTREAM_MALFORMED],
    ['gives two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', UPSTREAM_MALFORMED],
    ['sends a broken header', 'HTTP/1.1 200 OK\r\nX A: b\r\n\r\n', UPSTREAM_MALFORMED],
    [
      'sends more than 64 KiB of headers',
      `HTTP/1.1 200 OK\r\nX-A: ${'b'.repeat(65 * 1024)}\r\n\r\n`,
      UPSTREAM_MALFORMED,
    ],
    [
      'switches protocols unasked',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      UPSTREAM_MALFORMED,
    ],
  ];
  for (const [what, says, expected] of FAULTS) {
    it(`answers 502 ${expected.code} when it ${what}; the use stays counted`, async () => {
      const upstream = await startRawProvider((socket) => socket.end(says ?? ''));
      const faulty = await Scene.open({}, upstream.url);
      try {
        expectRefusal(await faulty.send(faulty.post({}, '{}')), expected);
        expect(upstream.requests).to.equal(1);
        expect(await faulty.uses()).to.equal(1);
      } finally {
        await faulty.close();
        await upstream.stop();
      }
    });
  }

  it('answers 502 when nobody listens there; the use stays counted', async () => {
    const faulty = await Scene.open({}, 'http://127.0.0.1:9');
    try {
      expectRefusal(await faulty.get(), UNREACHABLE);
      expect(await faulty.uses()).to.equal(1);
    } finally {
      await faulty.close();
    }
  });
});
