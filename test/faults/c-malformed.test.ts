import { expect } from 'chai';
import { head, type RawAnswer } from '../support/raw.js';
import { expectRefusal, UPSTREAM_MALFORMED } from '../support/refusals.js';
import { staged } from './support/stage.js';

const OK = 'HTTP/1.1 200 OK\r\n';

describe('C: an upstream whose answer is not as it should be', () => {
  const { stage, it } = staged();

  /** The answer on a connection of its own, if the upstream says this and then nothing, without ending. */
  async function answerTo(says: string, request = stage.get()): Promise<RawAnswer> {
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.send(says);
    };
    return stage.ask(request, /^\S+/.exec(request)?.[0]);
  }

  /** The next request gets its own answer, whatever the one before left behind. */
  async function expectNextIsAnswered(): Promise<void> {
    stage.upstream.script = (exchange) => {
      exchange.answer(200, '', '"the next one"');
    };
    expect((await stage.ask(stage.get())).text).to.equal('"the next one"');
  }

  const EXTRA: Record<string, string> = {
    'a few bytes': 'EXTRA',
    'a whole answer': `${OK}Content-Length: 7\r\n\r\n"stale"`,
    'the beginning of an answer': OK,
  };
  for (const [what, extra] of Object.entries(EXTRA)) {
    it(`C09 the bytes beyond Content-Length are nobody's: ${what}`, async () => {
      const answer = await answerTo(`${OK}Content-Length: 2\r\n\r\n{}${extra}`);
      expect(answer).to.include({ status: 200, text: '{}' });
      const [exchange] = stage.upstream.exchanges;
      await exchange!.closed();
      await expectNextIsAnswered();
      expect(stage.upstream.exchanges[1]).to.include({ isReused: false });
    });

    it(`C09 nor are those that come later, while the connection is idle: ${what}`, async () => {
      await answerTo(`${OK}Content-Length: 2\r\n\r\n{}`);
      const [exchange] = stage.upstream.exchanges;
      exchange!.send(extra);
      await exchange!.closed();
      await expectNextIsAnswered();
    });
  }

  const MALFORMED: Record<string, string> = {
    'a length beside a transfer coding': `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    'a transfer coding beside a length': `${OK}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    'two lengths': `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    'one length twice': `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nab`,
    'a length that is none': `${OK}Content-Length: 2x\r\n\r\nab`,
    'a length below zero': `${OK}Content-Length: -2\r\n\r\nab`,
    'a length beyond all numbers': `${OK}Content-Length: 99999999999999999999999\r\n\r\nab`,
    'a broken header name': `${OK}X A: b\r\n\r\n`,
    'a header without a colon': `${OK}Nothing\r\n\r\n`,
    'a control character in a header': `${OK}X-A: \x01\r\n\r\n`,
    'a NUL in a header': `${OK}X-A: a\0b\r\n\r\n`,
    'a CR in a header': `${OK}X-A: a\rX-B: b\r\n\r\n`,
    'a folded header': `${OK}X-A: a\r\n b\r\nContent-Length: 2\r\n\r\n{}`,
    'status 99': 'HTTP/1.1 99 Low\r\nContent-Length: 2\r\n\r\n{}',
    'status 099': 'HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\n{}',
    'status 000': 'HTTP/1.1 000 None\r\nContent-Length: 2\r\n\r\n{}',
    'status 1000': 'HTTP/1.1 1000 High\r\nContent-Length: 2\r\n\r\n{}',
    'no status': 'HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\n{}',
    'another protocol': 'SSH-2.0-OpenSSH_9.6\r\n',
    'a request': 'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'a TLS alert': '\x15\x03\x03\x00\x02\x02\x46',
    'nothing but garbage': '\0\xff\xfe'.repeat(100),
    'more than 64 KiB of headers': `${OK}X-A: ${'b'.repeat(65 * 1024)}\r\n\r\n`,
    'more than 64 KiB of small headers': `${OK}${'X-A: b\r\n'.repeat(12_000)}\r\n`,
    'another transfer coding': `${OK}Transfer-Encoding: gzip\r\n\r\nab`,
    'another transfer coding within chunks': `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    'another transfer coding in a line of its own': `${OK}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
  };
  for (const [what, says] of Object.entries(MALFORMED)) {
    it(`C10 ${what}: 502, and the connection is given up`, async () => {
      const answer = await answerTo(says);
      expectRefusal(answer, UPSTREAM_MALFORMED);
      await (await stage.upstream.only()).closed();
      expect(await stage.onlyEnd()).to.include({ outcome: 'upstream_error', status: 502, code: 'upstream_malformed' });
      expect(await stage.uses()).to.equal(1);
    });
  }

  const REASONS: Record<string, string> = {
    'a control character': 'O\x01K',
    'Latin-1': 'Tr\xe8s bien',
    'a long one': 'x'.repeat(10_000),
    none: '',
  };
  for (const [what, reason] of Object.entries(REASONS)) {
    it(`C11 the reason phrase does not travel: ${what}`, async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(`HTTP/1.1 404 ${reason}\r\nContent-Length: 2\r\n\r\n{}`);
      };
      const client = await stage.client(stage.get());
      await client.seen('{}');
      expect(client.pending.toString('latin1')).to.match(/^HTTP\/1\.1 404 Not Found\r\n/);
    });
  }

  for (const fields of ['', 'Upgrade: x\r\nConnection: upgrade\r\n', 'Upgrade: websocket\r\nConnection: upgrade\r\n']) {
    it(`C12 an unasked 101 with ${JSON.stringify(fields)}: 502`, async () => {
      expectRefusal(await answerTo(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`), UPSTREAM_MALFORMED);
      await (await stage.upstream.only()).closed();
    });
  }
});
