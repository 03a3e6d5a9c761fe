/** A back end in front of a stand-in for its vendor, and what all vendors' back ends have in common. */
import { expect } from 'chai';
import type { ServerResponse } from 'node:http';
import { type Backend, type Delivery, Unauthorized, type Verdict } from '../../daemon/dispatcher/backends/backend.js';
import { openBackend } from '../../daemon/dispatcher/backends/open.js';
import type { Settings } from '../../config/settings.js';
import type { RequestEventJson } from '../../daemon/store/event-json.js';
import { canary } from '../support/canaries.js';
import { TestClock } from '../support/clock.js';
import { deliveriesOf, requestEvent } from '../support/event-json.js';
import { eventually } from '../support/eventually.js';
import { json, type Provider, type Received, startProvider } from '../support/provider.js';

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

  deliver(...deliveries: Delivery[]): Promise<Verdict[]> {
    return this.backend.deliver(deliveries, new AbortController().signal);
  }

  /** What was posted to `path` and has arrived whole, as JSON. */
  bodies<T>(path: string): T[] {
    const arrived = this.receiver.received.filter(({ url, body }) => url === path && body.length > 0);
    return arrived.map(({ body }) => JSON.parse(body.toString()) as T);
  }
}

export interface Format {
  service: 'lunary' | 'helicone' | 'otlp';
  /** Where events are posted. */
  path: string;
  /** Answers as the vendor does when it has kept everything. */
  accept: (res: ServerResponse, received: Received) => void;
  /** What stands for `event` in a body that was posted. */
  keyOf: (event: RequestEventJson) => string;
}

/** What every vendor's back end does, whatever its format. */
export function behavesAsVendor({ service, path, accept, keyOf }: Format): void {
  describe(`the back end ${service}`, () => {
    let vendor: Vendor;

    beforeEach(async () => {
      vendor = new Vendor();
      await vendor.open(service);
      vendor.receiver.answer = (_req, res, received) => {
        accept(res, received);
      };
    });
    afterEach(async () => {
      const told = JSON.stringify(vendor.logged);
      await vendor.close();
      expect(told).not.to.include(vendor.key);
    });

    const answerWith = (status: number, headers: Record<string, string> = {}) => {
      vendor.receiver.answer = (_req, res) => {
        json(res, status, { error: { message: `a secret of the vendor about ${vendor.key}` } }, headers);
      };
    };

    it('delivers a batch with the key', async () => {
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

    it('knows an event by the same id when it is delivered again, and sends it once when a batch has it twice', async () => {
      const event = requestEvent();
      await vendor.deliver(...deliveriesOf(event));
      await vendor.deliver(...deliveriesOf(event, event));
      const [first, second, ...more] = vendor.bodies(path);
      expect(second).to.deep.equal(first);
      expect(more).to.be.empty;
    });

    it('rejects the one event that the vendor will not have, and delivers the others of its batch', async () => {
      const events = Array.from({ length: 7 }, () => requestEvent());
      vendor.receiver.answer = (_req, res, received) => {
        if (received.body.includes(keyOf(events[4]!))) json(res, 400, { error: 'no' });
        else accept(res, received);
      };
      const verdicts = await vendor.deliver(...deliveriesOf(...events));
      expect(verdicts.map(({ kind }) => kind)).to.deep.equal(
        events.map((_, i) => (i === 4 ? 'rejected' : 'delivered')),
      );
      expect(verdicts[4]).to.deep.equal({ kind: 'rejected', why: 'status 400' });
    });

    it('blames no event when the key is refused', async () => {
      answerWith(401);
      const failure = await vendor.deliver(...deliveriesOf(requestEvent(), requestEvent())).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).to.be.instanceOf(Unauthorized);
      expect((failure as Error).message).to.equal('status 401');
    });

    it('tries again after as long as the vendor asks for', async () => {
      answerWith(429, { 'retry-after': '7' });
      expect(await vendor.deliver(...deliveriesOf(requestEvent()))).to.deep.equal([
        { kind: 'retry', why: 'status 429', afterMs: 7000 },
      ]);
    });

    it('tries again after a failure of the vendor, and posts once each time', async () => {
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

    it('gives a silent vendor 20 s', async () => {
      vendor.receiver.answer = () => undefined;
      const verdicts = vendor.deliver(...deliveriesOf(requestEvent()));
      await eventually('it was posted', () => vendor.receiver.received.length === 1);
      vendor.clock.advance(20_000);
      expect(await verdicts).to.deep.equal([{ kind: 'retry', why: 'no answer within 20000 ms' }]);
    });

    it('lets go at once when it is told to stop', async () => {
      vendor.receiver.answer = () => undefined;
      const stop = new AbortController();
      const verdicts = vendor.backend.deliver(deliveriesOf(requestEvent()), stop.signal);
      await eventually('it was posted', () => vendor.receiver.received.length === 1);
      stop.abort();
      expect(await verdicts).to.deep.equal([{ kind: 'retry', why: 'aborted' }]);
    });

    it('takes the key to no other host', async () => {
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

    it('takes an endpoint that names the path already', async () => {
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
