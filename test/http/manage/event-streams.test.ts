import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect } from 'chai';
import { type ManagementClient, ManagementClient as Client, Unreachable } from '../../../daemon/api/client.js';
import { EventStreamParser } from '../../../daemon/api/event-stream.js';
import type { Refusal } from '../../../daemon/core/refusal.js';
import { EventStreams, type Feed, type StreamedEvent } from '../../../daemon/http/manage/event-streams.js';
import { canary } from '../../support/canaries.js';
import { TestClock } from '../../support/clock.js';
import { daemonForEachTest, MANAGEMENT_TOKEN } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { problemOf } from '../../support/management.js';

describe('streams of events', function () {
  this.timeout(30_000);
  let server: Server;

  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  async function serve(listener: RequestListener): Promise<string> {
    server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  describe('as they are sent', () => {
    let clock: TestClock;
    let streams: EventStreams;
    let url: string;
    let refused: Refusal | null;
    let source: Source;

    beforeEach(async () => {
      clock = new TestClock();
      streams = new EventStreams(clock);
      source = new Source();
      refused = null;
      url = await serve((req, res) => {
        streams.serve(req, res, source.feed).catch((error: unknown) => {
          refused = error as Refusal;
          res.destroy();
        });
      });
    });

    it('are not cached or buffered, and have the ID and data of each event', async () => {
      const { headers, body } = await fetch(url);
      expect(headers.get('content-type')).to.equal('text/event-stream');
      expect(headers.get('cache-control')).to.equal('no-store');
      expect(headers.get('x-accel-buffering')).to.equal('no');
      const read = textOf(body!);
      source.give({ id: '1', data: '{"a":1}' }, { id: '2', data: '{}' });
      await eventually('they arrive', () => read().includes('id: 2'));
      expect(read()).to.equal('retry: 2000\n\nid: 1\ndata: {"a":1}\n\nid: 2\ndata: {}\n\n');
    });

    it('have a heartbeat comment every 15 seconds', async () => {
      const read = textOf((await fetch(url)).body!);
      await eventually('it begins', () => read() !== '');
      clock.advance(14_000);
      for (let seconds = 15; seconds < 60; seconds += 15) {
        clock.advance(15_000);
        await eventually('a heartbeat', () => read().split(':\n\n').length === seconds / 15 + 1);
      }
    });

    it('end with their client, and so does their feed', async () => {
      const leaving = new AbortController();
      await fetch(url, { signal: leaving.signal });
      await eventually('it is open', () => streams.size === 1 && source.asked > 0);
      leaving.abort();
      await eventually('it has stopped', () => streams.size === 0 && source.hasEnded);
      expect(clock.pending).to.equal(0);
    });

    it('do not begin for a client that disconnected during the lookup of the start', async () => {
      let isOver = false;
      server.removeAllListeners('request').on('request', (req, res) => {
        res.once('close', () => {
          void streams.serve(req, res, source.feed).then(() => (isOver = true));
        });
      });
      const leaving = new AbortController();
      const asked = fetch(url, { signal: leaving.signal }).catch(() => undefined);
      await once(server, 'request');
      leaving.abort();
      await asked;
      await eventually('it is detected', () => isOver);
      expect([streams.size, clock.pending, source.asked]).to.deep.equal([0, 0, 0]);
    });

    it('read from the feed no faster than the client, and are cut if the client reads nothing for 30 seconds', async () => {
      const { port } = new URL(url);
      const client = connect(Number(port), '127.0.0.1', () => {
        client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      });
      client.pause();
      client.on('error', () => undefined);
      source.endless = { id: '1', data: 'x'.repeat(100_000) };
      let before = -1;
      await eventually('nothing more is taken', async () => {
        await new Promise((resolve) => setTimeout(resolve, 100));
        const isSame = source.asked > 0 && source.asked === before;
        before = source.asked;
        return isSame;
      });
      expect(source.asked).to.be.below(500);
      clock.advance(29_000);
      expect(streams.size).to.equal(1);
      clock.advance(1_500);
      await eventually('it is cut', () => streams.size === 0 && source.hasEnded);
      client.destroy();
    });

    it('end regularly when the daemon stops, and no new one begins', async () => {
      const { body } = await fetch(url);
      const read = textOf(body!);
      source.give({ id: '1', data: '{}' });
      await eventually('it arrives', () => read().includes('{}'));
      streams.end();
      await eventually('all have ended', () => streams.size === 0);
      await fetch(url).catch(() => undefined);
      expect(refused).to.include({ kind: 'unavailable' });
    });

    it('are limited to a hundred', async () => {
      await Promise.all(Array.from({ length: 100 }, () => fetch(url)));
      expect(streams.size).to.equal(100);
      await fetch(url).catch(() => undefined);
      expect(refused).to.include({ kind: 'unavailable' });
    });

    it('are cut, not ended, if their feed fails', async () => {
      source.failure = new Error('no database');
      const { body } = await fetch(url);
      const failure = await new Response(body).text().catch((error: unknown) => error);
      expect(failure).to.be.an('error');
      expect(refused).to.equal(source.failure);
    });
  });

  describe('as they are read', () => {
    let asked: IncomingMessage | null;

    const reader = (url: string, timeoutMs = 10_000): ManagementClient =>
      new Client({ server: url, managementToken: canary('management'), frontEnd: 'cli', timeoutMs, fetch });
    const answering = (status: number, headers: Record<string, string>, answer: (res: ServerResponse) => void) =>
      serve((req, res) => {
        asked = req;
        res.writeHead(status, headers);
        res.flushHeaders();
        answer(res);
      });
    const stream = (answer: (res: ServerResponse) => void) =>
      answering(200, { 'content-type': 'text/event-stream' }, answer);

    async function failureOf(events: AsyncIterable<unknown>): Promise<unknown> {
      try {
        for await (const event of events) expect(event).to.be.an('object');
      } catch (error) {
        return error;
      }
      return null;
    }

    it('are requested after the last event, with the filters, and end when the daemon ends them', async () => {
      const url = await stream((res) => res.end('id: 7\ndata: {"kind":"x"}\n\n:\n\nid: 8\ndata: {}\n\nid: 9\ndata: {'));
      const got = [];
      const events = reader(url).events({ status: '4xx' }, { lastEventId: '6' });
      for await (const { id, item } of events) got.push([id, item]);
      expect(got).to.deep.equal([
        ['7', { kind: 'x' }],
        ['8', {}],
      ]);
      expect(asked!.url).to.equal('/manage/events/stream?status=4xx');
      expect(asked!.headers).to.include({ 'last-event-id': '6', accept: 'text/event-stream' });
    });

    it('time out without data or heartbeats', async () => {
      const url = await stream((res) => {
        const beats = setInterval(() => res.write(':\n\n'), 20);
        setTimeout(() => {
          clearInterval(beats);
        }, 1_000);
      });
      const beganAt = performance.now();
      const failure = await failureOf(reader(url).events({}, { idleTimeoutMs: 500 }));
      expect(failure).to.be.instanceOf(Unreachable).with.property('message', 'no response in time');
      expect(performance.now() - beganAt).to.be.above(1_000);
    });

    it('time out if no response begins', async () => {
      const url = await serve(() => undefined);
      expect(await failureOf(reader(url, 100).events())).to.be.instanceOf(Unreachable);
    });

    it('fail when the connection breaks', async () => {
      const url = await stream((res) => res.write('data: {}\n\n', () => res.destroy()));
      expect(await failureOf(reader(url).events())).to.be.instanceOf(Unreachable);
    });

    it('do not follow redirects', async () => {
      const url = await answering(302, { location: 'http://127.0.0.1:9/' }, (res) => res.end());
      expect(await failureOf(reader(url).events())).to.be.instanceOf(Unreachable);
    });

    for (const [what, headers, body] of [
      ['a page', { 'content-type': 'text/html' }, '<html>'],
      ['events of others', { 'content-type': 'text/event-stream' }, 'data: hello\n\n'],
      ['data without an end', { 'content-type': 'text/event-stream' }, `data: ${'x'.repeat(5_000_000)}`],
    ] as const) {
      it(`are distinguished from ${what}`, async () => {
        const url = await answering(200, headers, (res) => res.end(body));
        const failure = await failureOf(reader(url).events());
        expect(failure).to.be.instanceOf(Unreachable).with.property('message', 'the server is not llmp');
      });
    }

    it('end without an error when their reader stops, and leave no connection', async () => {
      const url = await stream((res) => res.write('id: 1\ndata: {}\n\n'));
      const enough = new AbortController();
      for await (const event of reader(url).events({}, { signal: enough.signal })) {
        expect(event.id).to.equal('1');
        enough.abort();
      }
      for await (const event of reader(url).events()) {
        expect(event.id).to.equal('1');
        break;
      }
      await eventually('they are closed', () => connectionsOf(server).then((count) => count === 0));
    });

    it('are parsed from chunks of any size, with any line ends', () => {
      const text =
        'retry: 1\r\n\r\n: c\rid: a\rdata: 1\rdata:2\r\rid: b\ndata: \u{1f600}\nevent: x\n\ndata\n\nid: c\n\ndata:d\r\n\r\n';
      const expected = [
        { id: 'a', data: '1\n2' },
        { id: 'b', data: '\u{1f600}' },
        { id: 'b', data: '' },
        { id: 'c', data: 'd' },
      ];
      for (let size = 1; size <= text.length; size++) {
        const parser = new EventStreamParser();
        const events = [];
        for (let at = 0; at < text.length; at += size) events.push(...parser.push(text.slice(at, at + size)));
        expect(events, `pieces of ${size}`).to.deep.equal(expected);
      }
    });
  });
});

describe('streams of events of a daemon', () => {
  const daemon = daemonForEachTest();

  for (const path of ['/manage/audit/stream', '/manage/events/stream']) {
    const headers = { authorization: `Bearer ${MANAGEMENT_TOKEN}`, 'x-request-id': 'mine' };

    it(`are the response of GET ${path}, with the request ID`, async () => {
      const leaving = new AbortController();
      const { status, headers: answered } = await fetch(daemon.url + path, { headers, signal: leaving.signal });
      expect(status).to.equal(200);
      expect(answered.get('content-type')).to.equal('text/event-stream');
      expect(answered.get('cache-control')).to.equal('no-store');
      expect(answered.get('x-request-id')).to.equal('mine');
      leaving.abort();
      await eventually('it has ended', () => daemon.daemon.streams.size === 0);
    });

    it(`HEAD ${path} has their headers, without starting one`, async () => {
      const answer = await fetch(daemon.url + path, { method: 'HEAD', headers });
      expect([answer.status, await answer.text()]).to.deep.equal([200, '']);
      expect(answer.headers.get('content-type')).to.equal('text/event-stream');
      expect(answer.headers.get('x-request-id')).to.equal('mine');
      expect(daemon.daemon.streams.size).to.equal(0);
    });

    it(`are limited to a hundred: then GET ${path} is 503 with Retry-After`, async () => {
      const leaving = new AbortController();
      const { signal } = leaving;
      await Promise.all(Array.from({ length: 100 }, () => fetch(daemon.url + path, { headers, signal })));
      const answer = await daemon.manage('GET', path);
      problemOf(answer, 503, 'unavailable');
      expect(answer.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
      leaving.abort();
      await eventually('they have ended', () => daemon.daemon.streams.size === 0);
    });
  }
});

/** A feed that a test controls. */
class Source {
  asked = 0;
  hasEnded = false;
  endless: StreamedEvent | null = null;
  failure: Error | null = null;
  readonly #given: StreamedEvent[] = [];
  #wake: () => void = () => undefined;

  give(...events: StreamedEvent[]): void {
    this.#given.push(...events);
    this.#wake();
  }

  readonly feed: Feed = (signal) => this.#feed(signal);

  async *#feed(signal: AbortSignal): AsyncGenerator<StreamedEvent[]> {
    while (!signal.aborted) {
      this.asked += 1;
      if (this.failure) throw this.failure;
      yield this.endless ? [this.endless] : this.#given.splice(0);
      if (!this.endless && this.#given.length === 0) await this.#more(signal);
    }
    this.hasEnded = true;
  }

  #more(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      signal.addEventListener('abort', () => {
        resolve();
      });
      if (signal.aborted) resolve();
    });
  }
}

/** @returns everything that has arrived so far. */
function textOf(body: ReadableStream<Uint8Array>): () => string {
  let text = '';
  const read = async () => {
    for await (const piece of body) text += Buffer.from(piece).toString();
  };
  read().catch(() => undefined);
  return () => text;
}

const connectionsOf = (server: Server) =>
  new Promise<number>((resolve, reject) => {
    server.getConnections((error, count) => {
      if (error) reject(error);
      else resolve(count);
    });
  });
