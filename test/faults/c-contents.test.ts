import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { chunk, LAST_CHUNK } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const USAGE = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const COUNTED = {
  ...{ promptTokens: 3, completionTokens: 4, totalTokens: 7 },
  ...{ cacheReadTokens: null, cacheWriteTokens: null },
};

describe('C: usage that is read from a response while it is forwarded', () => {
  const { stage, it } = staged({ env: { OBSERVABILITY_CAPTURE_BODIES: 'true', OBSERVABILITY_MAX_BODY_BYTES: '1000' } });
  const asking = '{"model":"gpt-4o","messages":[]}';
  const answerPacked = (exchange: Exchange, body: Buffer) => {
    exchange.send('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n');
    exchange.send(`Content-Length: ${body.length}\r\n\r\n`);
    exchange.send(body);
  };

  it('C19 usage is read from a copy of a compressed response, which is forwarded byte for byte', async () => {
    const body = gzipSync(JSON.stringify({ model: 'gpt-4o-mini', choices: ['x'.repeat(5_000)], usage: USAGE }));
    stage.upstream.script = (exchange) => {
      answerPacked(exchange, body);
    };
    const answer = await stage.ask(stage.post(asking));
    expect(answer.body.equals(body)).to.equal(true);
    const { model, usage } = await stage.onlyRecord();
    expect({ model, usage }).to.deep.equal({ model: 'gpt-4o-mini', usage: COUNTED });
  });

  it('C20 a copy that expands a thousandfold is abandoned, and the response is forwarded', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '));
    stage.upstream.script = (exchange) => {
      answerPacked(exchange, bomb);
    };
    const answer = await stage.ask(stage.post(asking));
    expect(answer.body.equals(bomb)).to.equal(true);
    const { model, usage, responseBody, outcome } = await stage.onlyRecord();
    expect({ model, usage, outcome }).to.deep.equal({ model: 'gpt-4o', usage: null, outcome: 'ok' });
    expect(responseBody).to.match(/^\[\d+ bytes/);
  });

  it('C25 usage is read from a stream whose bytes arrive one at a time', async () => {
    const text = `data: {"model":"gpt-4o","choices":[{"delta":{"content":"wörld 🙂"}}]}\r\n\r\ndata: {"choices":[],"usage":${JSON.stringify(USAGE)}}\n\ndata: [DONE]\n\n`;
    stage.upstream.script = async (exchange) => {
      exchange.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n');
      for (const byte of Buffer.from(text)) {
        exchange.send(Buffer.from(chunk(String.fromCharCode(byte)), 'latin1'));
        await new Promise(setImmediate);
      }
      exchange.send(LAST_CHUNK);
    };
    expect((await stage.ask(stage.post(asking))).text).to.equal(text);
    const { model, usage, responseBody } = await stage.onlyRecord();
    expect({ model, usage }).to.deep.equal({ model: 'gpt-4o', usage: COUNTED });
    expect(responseBody).to.include('wörld 🙂');
  });
});
