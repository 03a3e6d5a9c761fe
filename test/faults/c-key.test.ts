import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { type RawResponse, WEBSOCKET } from '../support/raw.js';
import { expectRefusal, UPSTREAM_MALFORMED } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

describe("C: an upstream that returns the project's key", () => {
  const { stage, it } = staged();

  /** The response if the upstream sends this. The stage checks that no record contains the key. */
  async function answerTo(say: (exchange: Exchange, key: string) => void): Promise<RawResponse> {
    stage.upstreamEchoesSecrets = true;
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      say(exchange, exchange.all('authorization').join());
    };
    return stage.ask(stage.get());
  }

  it('C32 the key in a response: it is masked in headers, unchanged in the body, and not recorded', async () => {
    const bearer = `Bearer ${stage.upstreamKey}`;
    const answer = await answerTo((exchange, key) => {
      exchange.respond(
        200,
        `Authorization: ${key}\r\nX-Echo: ${key}\r\n`,
        JSON.stringify({ headers: { authorization: key } }),
      );
    });
    expect(answer.json).to.deep.equal({ headers: { authorization: bearer } });
    expect(answer.all('x-echo')).to.deep.equal(['Bearer ********']);
  });

  const IDS: [what: string, id: (key: string) => string, recorded: RegExp][] = [
    ['that contains the key', (key) => key, /^Bearer \*{8}$/],
    ['that contains the key among other text', (key) => `req_${key.slice('Bearer '.length)}_1`, /^req_\*{8}_1$/],
    ['that is very long', () => 'a'.repeat(10_000), /^a{200}$/],
  ];
  for (const [what, id, recorded] of IDS) {
    it(`C32 the upstream's request ID ${what} is forwarded and recorded without it`, async () => {
      let said = '';
      const answer = await answerTo((exchange, key) => {
        said = id(key);
        exchange.respond(200, `X-Request-ID: ${said}\r\n`);
      });
      expect(answer.all('x-upstream-request-id')).to.deep.equal([said.replaceAll(stage.upstreamKey, '********')]);
      expect((await stage.onlyRecord()).upstreamRequestId).to.match(recorded);
    });
  }

  const MISTAKES: Record<string, (key: string) => string> = {
    'in a broken header name': (key) => `HTTP/1.1 200 OK\r\n${key}\r\n\r\n`,
    'in a broken header value': (key) => `HTTP/1.1 200 OK\r\nX-A: ${key}\0\r\n\r\n`,
    'instead of HTTP': (key) => `${key}\r\n\r\n`,
    'as a transfer coding': (key) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: ${key}\r\n\r\n`,
    'as a length': (key) => `HTTP/1.1 200 OK\r\nContent-Length: ${key}\r\n\r\n`,
    'as a status': (key) => `HTTP/1.1 ${key} OK\r\n\r\n`,
  };
  for (const [what, says] of Object.entries(MISTAKES)) {
    it(`C32 the key ${what}: 502, and it is not recorded`, async () => {
      expectRefusal(
        await answerTo((exchange, key) => {
          exchange.send(says(key));
        }),
        UPSTREAM_MALFORMED,
      );
      await eventually('the record exists', () =>
        stage.daemon.logged.some((line) => line.includes('upstream_malformed')),
      );
    });
  }

  it('C32 the key in a broken chunk: the response is cut, and the key is not recorded', async () => {
    stage.upstreamEchoesSecrets = true;
    stage.upstream.script = (exchange) => {
      exchange.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      exchange.socket.write(`${exchange.all('authorization').join()}\r\n`);
    };
    const client = await stage.client(stage.get());
    await client.closed;
    expect(await stage.onlyRecord()).to.include({ outcome: 'truncated' });
  });
});

// These responses contain the key outside of their body only, so the stage checks that no client received it.
for (const [how, env] of Object.entries({ forwarded: {}, 'that is cached': { HTTP_CACHE_ENABLED: 'true' } })) {
  describe(`C: a response ${how} that repeats the project's key`, () => {
    const { stage, it } = staged({ env });

    const PLACES: Record<string, (key: string) => string> = {
      'as the name of a header': (key) =>
        `HTTP/1.1 200 OK\r\n${key}: x\r\n${key.toUpperCase()}: y\r\nX-${key}-Id: z\r\nContent-Length: 2\r\n\r\nok`,
      'in a list of names': (key) =>
        `HTTP/1.1 200 OK\r\nVary: ${key}\r\nConnection: ${key}\r\n${key}: x\r\nContent-Length: 2\r\n\r\nok`,
      'as the reason phrase': (key) => `HTTP/1.1 200 ${key}\r\nContent-Length: 2\r\n\r\nok`,
      'in trailers': (key) =>
        `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: ${key}\r\n\r\n2\r\nok\r\n0\r\n${key}: x\r\nX-A: ${key}\r\n\r\n`,
      'in an interim response': (key) =>
        `HTTP/1.1 103 ${key}\r\n${key}: x\r\nLink: <${key}>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`,
    };
    for (const [place, says] of Object.entries(PLACES)) {
      it(`C32 the key ${place} does not reach the client`, async () => {
        stage.upstream.script = (exchange) => {
          const cacheable = says(stage.upstreamKey).replace('HTTP/1.1 200 OK\r\n', '$&Cache-Control: max-age=60\r\n');
          exchange.send(cacheable);
        };
        for (let request = 0; request < 2; request++) {
          const answer = await stage.ask(stage.get());
          expect({ status: answer.status, text: answer.text }).to.deep.equal({ status: 200, text: 'ok' });
          expect(answer.all(stage.upstreamKey)).to.deep.equal([]);
        }
      });
    }
  });
}

describe("C: a WebSocket handshake whose response repeats the project's key", () => {
  const { stage, it } = staged();
  const handshake = () => stage.get(WEBSOCKET);

  for (const [what, status, send] of [
    [
      'accepted',
      101,
      (exchange: Exchange, fields: string) => {
        exchange.switchProtocols(fields);
      },
    ],
    [
      'refused',
      403,
      (exchange: Exchange, fields: string) => {
        exchange.respond(403, fields);
      },
    ],
  ] as const) {
    it(`C32 the key as a header name, if it is ${what}, does not reach the client`, async () => {
      const { upstreamKey: key } = stage;
      stage.upstream.script = (exchange) => {
        send(exchange, `${key}: x\r\nX-${key.toUpperCase()}: y\r\nX-A: ${key}\r\nSec-WebSocket-Protocol: ${key}\r\n`);
      };
      const answer = await stage.ask(handshake());
      expect(answer.status).to.equal(status);
      expect(answer.all('x-a')).to.deep.equal(['********']);
    });
  }
});
