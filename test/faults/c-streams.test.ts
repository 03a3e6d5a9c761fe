import { expect } from 'chai';
import { TestClock } from '../support/clock.js';
import { chunk, LAST_CHUNK, type RawClient } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const SECOND_MS = 1_000;
const REQUEST_TIMEOUT_MS = 5 * SECOND_MS;
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';

describe('C: an upstream that streams', () => {
  // The clock stands still: whatever arrives without moving it did not wait for a timer.
  const clock = new TestClock({ standsStill: true });
  const { stage, it } = staged({ env: { REQUEST_TIMEOUT: `${REQUEST_TIMEOUT_MS}ms` }, clock });

  /** A stream of which the client has seen the head only. */
  async function begun(head = HEAD): Promise<{ client: RawClient; exchange: Exchange }> {
    stage.upstream.script = (exchange) => {
      exchange.send(head);
    };
    const client = await stage.client(stage.get());
    await client.seen('\r\n\r\n');
    client.skip(client.pending.indexOf('\r\n\r\n') + 4);
    expect(client.pending.toString()).to.equal('');
    return { client, exchange: await stage.upstream.only() };
  }

  /** Sends `text`, and waits until the client has received exactly that, in its own chunks. */
  async function pass(client: RawClient, exchange: Exchange, text: string): Promise<void> {
    const onTheWire = Buffer.from(chunk(text), 'latin1');
    exchange.send(onTheWire);
    await client.seen(onTheWire);
    expect(client.pending.toString('latin1')).to.equal(onTheWire.toString('latin1'));
    client.skip();
  }

  async function finish(client: RawClient, exchange: Exchange): Promise<void> {
    exchange.send(LAST_CHUNK);
    await client.seen(LAST_CHUNK);
    expect(client.pending.toString()).to.equal(LAST_CHUNK);
    expect(await stage.onlyRecord()).to.include({ outcome: 'ok', status: 200 });
  }

  it('C21 an event every second for half an hour: each arrives at once, and separately', async () => {
    const { client, exchange } = await begun();
    const tookMs: number[] = [];
    for (let second = 0; second < 1_800; second++) {
      const sentAtMs = performance.now();
      await pass(client, exchange, `data: {"n":${second}}\n\n`);
      tookMs.push(performance.now() - sentAtMs);
      clock.advance(SECOND_MS);
    }
    await finish(client, exchange);
    // The bound is for each event. On a busy machine the median shows the same.
    expect(tookMs.sort((a, b) => a - b)[900]).to.be.below(50);
  });

  it('C22 a stream that lasts much longer than REQUEST_TIMEOUT is not cut while data arrives', async () => {
    const { client, exchange } = await begun();
    for (let sentMs = 0; sentMs < 60 * SECOND_MS; sentMs += REQUEST_TIMEOUT_MS - 1) {
      clock.advance(REQUEST_TIMEOUT_MS - 1);
      await pass(client, exchange, 'data: a\n\n');
    }
    await finish(client, exchange);
  });

  for (const [what, says] of Object.entries({
    'after its head': '',
    'after an event': 'data: a\n\n',
    'within an event': 'data: a',
  })) {
    it(`C23 a stream that falls silent ${what}: the client is cut off after REQUEST_TIMEOUT, and not before`, async () => {
      const { client, exchange } = await begun();
      clock.advance(REQUEST_TIMEOUT_MS - 1);
      if (says !== '') {
        await pass(client, exchange, says);
        clock.advance(REQUEST_TIMEOUT_MS - 1);
      }
      await new Promise(setImmediate);
      expect(stage.daemon.ended, 'not yet ended').to.be.empty;
      clock.advance(1);
      await client.closed;
      // Between two events the client gets an error event, and is then cut off nevertheless.
      const why = 'data: {"error":"upstream timed out","code":"upstream_timeout","request_id":"';
      const rest = client.pending.toString();
      if (says.endsWith('data: a')) expect(rest, 'no end of the response').to.equal('');
      else expect(rest, 'no end of the response').to.match(new RegExp(`^\\w+\\r\\n${why}\\w+"\\}\\n\\n\\r\\n$`));
      await exchange.closed();
      expect(await stage.onlyRecord()).to.include({ outcome: 'timeout', status: 200 });
      expect(await stage.uses()).to.equal(1);
    });
  }

  it('C24 a byte a second is forwarded for any time: REQUEST_TIMEOUT limits silence, and nothing limits the whole', async () => {
    const bytes = 600;
    const { client, exchange } = await begun(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`);
    for (let i = 1; i <= bytes; i++) {
      exchange.send('x');
      await client.seen('x'.repeat(i));
      clock.advance(SECOND_MS);
    }
    expect(client.pending.toString()).to.equal('x'.repeat(bytes));
    expect(await stage.onlyRecord()).to.include({ outcome: 'ok' });
  });

  it('C24 interim responses do not extend the time for the final one', async () => {
    stage.upstream.script = () => undefined;
    const client = await stage.client(stage.get());
    const exchange = await stage.upstream.only();
    for (let waitedMs = 0; waitedMs < REQUEST_TIMEOUT_MS; waitedMs += SECOND_MS) {
      expect(stage.daemon.ended).to.be.empty;
      exchange.send('HTTP/1.1 102 Processing\r\n\r\n');
      // Nothing shows that it has been read. If it was not, the test passes anyway.
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
      clock.advance(SECOND_MS);
    }
    expect((await client.response()).status).to.equal(504);
  });

  const TEXT = 'event: é🙂\r\ndata: {"choices":[{"delta":{"content":"wörld ￼"}}]}\n\ndata: [DONE]\n\n';
  it('C25 pieces that end anywhere, even within a character, a name or a line end, are forwarded unchanged', async () => {
    const { client, exchange } = await begun();
    for (const byte of Buffer.from(TEXT)) await pass(client, exchange, String.fromCharCode(byte));
    await finish(client, exchange);
  });

  it('C25 pieces that end within the framing of a chunk are forwarded unchanged', async () => {
    const onTheWire = Buffer.from(chunk(Buffer.from(TEXT).toString('latin1')) + LAST_CHUNK, 'latin1');
    for (const at of [
      1,
      2,
      3,
      4,
      5,
      onTheWire.length - 7,
      onTheWire.length - 6,
      onTheWire.length - 3,
      onTheWire.length - 1,
    ]) {
      stage.upstream.script = async (exchange) => {
        exchange.send(Buffer.concat([Buffer.from(HEAD), onTheWire.subarray(0, at)]));
        await new Promise(setImmediate);
        exchange.send(onTheWire.subarray(at));
      };
      expect((await stage.ask(stage.get())).text).to.equal(TEXT);
    }
  });
});
