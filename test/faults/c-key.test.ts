import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import type { RawAnswer } from '../support/raw.js';
import { expectRefusal, UPSTREAM_MALFORMED } from '../support/refusals.js';
import { staged } from './support/stage.js';
import type { Exchange } from './support/upstream.js';

describe("C: an upstream that says the project's key", () => {
  const { stage, it } = staged();

  /** The answer, if this is said; whatever it holds, nothing is written down here that holds the key: the stage sees to that. */
  async function answerTo(say: (exchange: Exchange, key: string) => void): Promise<RawAnswer> {
    stage.upstreamEchoesSecrets = true;
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      say(exchange, exchange.all('authorization').join());
    };
    return stage.ask(stage.get());
  }

  it('C32 in an answer: it is passed on as it is, and written down nowhere', async () => {
    const bearer = `Bearer ${stage.upstreamKey}`;
    const answer = await answerTo((exchange, key) => {
      exchange.answer(
        200,
        `Authorization: ${key}\r\nX-Echo: ${key}\r\n`,
        JSON.stringify({ headers: { authorization: key } }),
      );
    });
    expect(answer.json).to.deep.equal({ headers: { authorization: bearer } });
    expect(answer.all('x-echo')).to.deep.equal([bearer]);
  });

  const IDS: [what: string, id: (key: string) => string, recorded: RegExp][] = [
    ['that holds the key', (key) => key, /^\*+$/],
    ['that holds it among other things', (key) => `req_${key.slice('Bearer '.length)}_1`, /^\*+$/],
    ['beyond measure', () => 'a'.repeat(10_000), /^a{200}$/],
  ];
  for (const [what, id, recorded] of IDS) {
    it(`C32 as its request id: an id ${what} is passed on, and not written down like that`, async () => {
      let said = '';
      const answer = await answerTo((exchange, key) => {
        said = id(key);
        exchange.answer(200, `X-Request-ID: ${said}\r\n`);
      });
      expect(answer.all('x-upstream-request-id')).to.deep.equal([said]);
      expect((await stage.onlyEnd()).upstreamRequestId).to.match(recorded);
    });
  }

  const MISTAKES: Record<string, (key: string) => string> = {
    'in a broken header name': (key) => `HTTP/1.1 200 OK\r\n${key}\r\n\r\n`,
    'in a broken header value': (key) => `HTTP/1.1 200 OK\r\nX-A: ${key}\0\r\n\r\n`,
    'in place of HTTP': (key) => `${key}\r\n\r\n`,
    'as a transfer coding': (key) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: ${key}\r\n\r\n`,
    'as a length': (key) => `HTTP/1.1 200 OK\r\nContent-Length: ${key}\r\n\r\n`,
    'as a status': (key) => `HTTP/1.1 ${key} OK\r\n\r\n`,
  };
  for (const [what, says] of Object.entries(MISTAKES)) {
    it(`C32 ${what}: 502, and it is written down nowhere`, async () => {
      expectRefusal(
        await answerTo((exchange, key) => {
          exchange.send(says(key));
        }),
        UPSTREAM_MALFORMED,
      );
      await eventually('there is a record', () =>
        stage.daemon.logged.some((line) => line.includes('upstream_malformed')),
      );
    });
  }

  it('C32 in a broken chunk: the answer is cut, and it is written down nowhere', async () => {
    stage.upstreamEchoesSecrets = true;
    stage.upstream.script = (exchange) => {
      exchange.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      exchange.socket.write(`${exchange.all('authorization').join()}\r\n`);
    };
    const client = await stage.client(stage.get());
    await client.closed;
    expect(await stage.onlyEnd()).to.include({ outcome: 'truncated' });
  });
});
