/** A backend with a stand-in for its vendor, and tests that all vendors' backends share. */
import { expect } from 'chai';
import type { ServerResponse } from 'node:http';
import {
  type Backend,
  type Delivery,
  Unauthorized,
  type DeliveryResult,
  openBackend,
} from '../../daemon/dispatcher/backends/backend.js';
import type { Settings } from '../../config/settings.js';
import type { RequestEventJson } from '../../daemon/store/event-json.js';
import { canary } from '../support/canaries.js';
import { TestClock } from '../support/clock.js';
import { deliveriesOf, requestEvent } from '../support/event-json.js';
import { eventually } from '../support/eventually.js';
import { json, type Provider, type Received, replies, startProvider } from '../support/provider.js';

export class Vendor {
  readonly key = canary('dispatcher');
  readonly clock = new TestClock();
  readonly logged: string[] = [];
  receiver!: Provider;
  backend!: Backend;

  async open(service: Settings['dispatcherService'], path = ''): Promise<void> {
    this.receiver = await startProvider();
    const note = (message: string, fields?: object) => this.logged.push(JSON.stringify({ message, ...fields }));
    this.backend = await openBackend(service, {
      endpoint: this.receiver.url + path,
      apiKey: this.key,
      clock: this.clock,
      log: { debug: note, info: note, warn: note, error: note },
      version: '1.2.3',
    });
  }

  async close(): Promise<void> {
    await this.backend.close();
    await this.receiver.stop();
  }

  deliver(...deliveries: Delivery[]): Promise<DeliveryResult[]> {
    return this.backend.deliver(deliveries, new AbortController().signal);
  }

  /** The complete bodies that were posted to `path`, as JSON. */
  bodies<T>(path: string): T[] {
    const arrived = this.receiver.received.filter(({ url, body }) => url === path && body.length > 0);
    return arrived.map(({ body }) => JSON.parse(body.toString()) as T);
  }
}

export interface Format {
  service: 'lunary' | 'helicone' | 'otlp';
  /** Where events are posted. */
  path: string;
  /** Responds as the vendor does if it stored everything. */
  accept: (res: ServerResponse, received: Received) => void;
  /** The text that identifies `event` in a posted body. */
  keyOf: (event: RequestEventJson) => string;
}

/** Tests of behaviour that does not depend on the format. */
export function behavesAsVendor({ service, path, accept, keyOf }: Format): void {
  describe(`the backend ${service}`, () => {
    let vendor: Vendor;

    beforeEach(async () => {
      vendor = new Vendor();
      await vendor.open(service);
      vendor.receiver.answer = (_req, res, received) => {
        accept(res, received);
      };
    });
    afterEach(async () => {
      const logged = JSON.stringify(vendor.logged);
      await vendor.close();
      expect(logged).not.to.include(vendor.key);
    });

    const answerWith = (status: number, headers: Record<string, string> = {}) => {
      vendor.receiver.answer = replies(
        status,
        { error: { message: `a secret of the vendor about ${vendor.key}` } },
        headers,
      );
    };

    it('sends the key with each batch', async () => {
      const events = [requestEvent(), requestEvent()];
      expect(await vendor.deliver(...deliveriesOf(...events))).to.deep.equal([
        { kind: 'delivered' },
        { kind: 'delivered' },
      ]);
      const posted = vendor.receiver.received.filter(({ url }) => url === path);
      for (const { method, headers } of posted) {
        expect(method).to.equal('POST');
        expect(headers.authorization).to.equal(`Bearer ${vendor.key}`);
        expect(headers['content-type']).to.equal('application/json');
      }
      const sent = posted.map(({ body }) => body.toString()).join('');
      for (const event of events) expect(sent).to.include(keyOf(event));
    });

    it('gives a repeated event the same ID, and sends it once if a batch has it twice', async () => {
      const event = requestEvent();
      await vendor.deliver(...deliveriesOf(event));
      await vendor.deliver(...deliveriesOf(event, event));
      const [first, second, ...more] = vendor.bodies(path);
      expect(second).to.deep.equal(first);
      expect(more).to.be.empty;
    });

    it('rejects only the event that the vendor refuses, and delivers the others of its batch', async () => {
      const events = Array.from({ length: 7 }, () => requestEvent());
      vendor.receiver.answer = (_req, res, received) => {
        if (received.body.includes(keyOf(events[4]!))) json(res, 400, { error: 'no' });
        else accept(res, received);
      };
      const results = await vendor.deliver(...deliveriesOf(...events));
      expect(results.map(({ kind }) => kind)).to.deep.equal(events.map((_, i) => (i === 4 ? 'rejected' : 'delivered')));
      expect(results[4]).to.deep.equal({ kind: 'rejected', why: 'status 400' });
    });

    it('blames no event if the key is refused', async () => {
      answerWith(401);
      const failure = await vendor.deliver(...deliveriesOf(requestEvent(), requestEvent())).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).to.be.instanceOf(Unauthorized);
      expect((failure as Error).message).to.equal('status 401');
    });

    it('retries after the time that the vendor asks for', async () => {
      answerWith(429, { 'retry-after': '7' });
      expect(await vendor.deliver(...deliveriesOf(requestEvent()))).to.deep.equal([
        { kind: 'retry', why: 'status 429', afterMs: 7000 },
      ]);
    });

    it('retries after a failure of the vendor, and posts once each time', async () => {
      answerWith(500);
      expect(await vendor.deliver(...deliveriesOf(requestEvent()))).to.deep.equal([
        { kind: 'retry', why: 'status 500' },
      ]);
      answerWith(503);
      expect(await vendor.deliver(...deliveriesOf(requestEvent()))).to.deep.equal([
        { kind: 'retry', why: 'status 503' },
      ]);
      expect(vendor.receiver.received).to.have.length(2);
    });

    it('waits 20 s for a vendor that does not respond', async () => {
      vendor.receiver.answer = () => undefined;
      const results = vendor.deliver(...deliveriesOf(requestEvent()));
      await eventually('a post', () => vendor.receiver.received.length === 1);
      vendor.clock.advance(20_000);
      expect(await results).to.deep.equal([{ kind: 'retry', why: 'no response within 20000 ms' }]);
    });

    it('aborts at once when it is stopped', async () => {
      vendor.receiver.answer = () => undefined;
      const stop = new AbortController();
      const results = vendor.backend.deliver(deliveriesOf(requestEvent()), stop.signal);
      await eventually('a post', () => vendor.receiver.received.length === 1);
      stop.abort();
      expect(await results).to.deep.equal([{ kind: 'retry', why: 'aborted' }]);
    });

    it('never sends the key to another host', async () => {
      const elsewhere = await startProvider();
      try {
        for (const status of [301, 302, 307, 308]) {
          answerWith(status, { location: elsewhere.url + path });
          expect(await vendor.deliver(...deliveriesOf(requestEvent()))).to.deep.equal([
            { kind: 'retry', why: `status ${status}` },
          ]);
        }
        expect(elsewhere.received).to.be.empty;
      } finally {
        await elsewhere.stop();
      }
    });

    it('accepts an endpoint that already contains the path', async () => {
      const other = new Vendor();
      await other.open(service, path);
      other.receiver.answer = (_req, res, received) => {
        accept(res, received);
      };
      await other.deliver(...deliveriesOf(requestEvent()));
      expect(other.receiver.received.map(({ url }) => url)).to.deep.equal([path]);
      await other.close();
    });
  });
}
