import { connect as connectTls } from 'node:tls';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { startDaemon, type TestDaemon } from '../../support/daemon.js';
import { ask, RawClient } from '../../support/raw.js';

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

describe('a client that uses another protocol on the plain HTTP port', () => {
  let daemon: TestDaemon;
  /** The lines that the start wrote. */
  let begun: number;
  beforeEach(async () => {
    daemon = await startDaemon();
    begun = daemon.logged.length;
  });
  afterEach(() => daemon.stop());

  const warnings = () =>
    daemon.logged
      .slice(begun)
      .map((line) => JSON.parse(line) as { level: string; message: string; from?: string; connections?: number })
      .filter(({ level }) => level === 'warn');

  it('gets an error for a TLS handshake, which is logged once', async () => {
    const { port, hostname } = new URL(daemon.url);
    for (let i = 0; i < 5; i++) {
      await new Promise((resolve) => connectTls({ port: Number(port), host: hostname }).once('error', resolve));
    }
    const [warning, ...more] = warnings();
    expect(warning).to.deep.include({ from: '127.0.0.1', connections: 1 });
    expect(warning?.message).to.include('TLS handshake').and.include('http://');
    expect(more).to.deep.equal([]);
    const answer = await ask(
      daemon.url,
      Buffer.from([0x16, 0x03, 0x01, 0x00, 0xf8, 0x01, 0x00, 0x00, 0xf4, 0x03, 0x03]),
    );
    expect(answer.status).to.equal(400);
    expect(answer.json).to.deep.include({ code: 'malformed_request', error: warning?.message });
  });

  it('gets an error for HTTP/2, which is logged', async () => {
    const answer = await ask(daemon.url, PREFACE);
    expect(answer.status).to.equal(400);
    expect(answer.json.error).to.include('HTTP/2').and.include('HTTP/1.1');
    expect(warnings().map(({ message }) => message)).to.deep.equal([answer.json.error]);
  });

  it('gets the same error when its HTTP/2 preface arrives byte by byte', async () => {
    const client = await RawClient.to(daemon.url);
    for (const byte of PREFACE) {
      client.send(byte);
      for (let i = 0; i < 5; i++) await turn();
    }
    expect((await client.response()).json.error).to.include('HTTP/2');
    client.destroy();
  });

  it('is not assumed when such bytes follow a request, or for other garbage', async () => {
    for (const rubbish of ['\x15\x03', '\0', 'PRINT / HTTP/1.1\r\n\r\n'])
      await ask(daemon.url, Buffer.from(rubbish, 'latin1'));
    const client = await RawClient.to(daemon.url);
    client.send('GET /live HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.response();
    client.send(Buffer.from([0x16, 0x03, 0x01]));
    expect((await client.response()).json.error).to.equal('malformed request');
    client.destroy();
    expect(warnings()).to.deep.equal([]);
  });
});
