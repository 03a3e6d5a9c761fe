import { HeliconeManualLogger } from '@helicone/helpers';
import { expect } from 'chai';
import { getEventListeners } from 'node:events';
import type { EventJson } from '../../daemon/store/event-json.js';
import { changeEvent, deliveriesOf, NO_USAGE, PROJECT_ID, requestEvent, TOKEN_ID } from '../support/event-json.js';
import { eventually } from '../support/eventually.js';
import { json, replies } from '../support/provider.js';
import { behavesAsVendor, Vendor } from './vendor.js';

const PATH = '/custom/v1/log';

interface Log {
  providerRequest: { url: string; json: Record<string, unknown>; meta: Record<string, string> };
  providerResponse: { headers: object; status: number; json: Record<string, unknown>; textBody?: string };
  timing: Record<'startTime' | 'endTime', { seconds: number; milliseconds: number }> & { timeToFirstToken?: number };
}

behavesAsVendor({
  service: 'helicone',
  path: PATH,
  accept: (res) => {
    res.end('ok');
  },
  keyOf: ({ id }) => id,
});

describe('what the helicone backend sends', () => {
  let vendor: Vendor;
  let sdk: HeliconeManualLogger;

  beforeEach(async () => {
    vendor = new Vendor();
    await vendor.open('helicone');
    vendor.receiver.answer = (_req, res) => {
      res.end('ok');
    };
    sdk = new HeliconeManualLogger({ apiKey: vendor.key, loggingEndpoint: vendor.receiver.url + PATH });
  });
  afterEach(() => vendor.close());

  const REQUEST = { model: 'gpt-test', messages: [{ role: 'user', content: 'Hello' }] };
  const RESPONSE = {
    id: 'chatcmpl-1',
    model: 'gpt-test',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  };

  /** The headers and the log of the only post. */
  function taken(): { headers: Record<string, unknown>; log: Log } {
    const [received, ...more] = vendor.receiver.received.splice(0);
    expect(more).to.be.empty;
    expect(received).to.include({ method: 'POST', url: PATH });
    return { headers: received!.headers, log: JSON.parse(received!.body.toString()) as Log };
  }

  async function sentFor(event: EventJson) {
    expect(await vendor.deliver(...deliveriesOf(event))).to.deep.equal([{ kind: 'delivered' }]);
    return taken();
  }

  /** Removes times, which differ between runs, and `meta`, which the SDK leaves empty because servers read the headers. */
  function comparable({ providerRequest: { meta: _meta, ...request }, providerResponse, timing }: Log) {
    const shape = Object.entries(timing).map(([name, it]) => [
      name,
      typeof it === 'object' ? Object.keys(it) : typeof it,
    ]);
    return { providerRequest: request, providerResponse, timing: Object.fromEntries(shape) as object };
  }

  const CREDENTIAL_AND_LABELS = ['authorization', 'content-type', 'helicone-request-id', 'helicone-user-id'];
  const only = (headers: Record<string, unknown>) =>
    Object.fromEntries(CREDENTIAL_AND_LABELS.map((name) => [name, headers[name]]));

  it('equals what the SDK sends for the same chat', async () => {
    const ours = await sentFor(
      requestEvent({ request_body: JSON.stringify(REQUEST), response_body: JSON.stringify(RESPONSE) }),
    );
    const labels = {
      'Helicone-Request-Id': String(ours.headers['helicone-request-id']),
      'Helicone-User-Id': TOKEN_ID,
    };
    await sdk.logRequest(
      REQUEST,
      (recorder) => {
        recorder.appendResults(RESPONSE);
        return Promise.resolve();
      },
      labels,
    );
    const theirs = taken();
    expect(comparable(ours.log)).to.deep.equal(comparable(theirs.log));
    expect(only(ours.headers)).to.deep.equal(only(theirs.headers));
    expect(ours.headers).to.include({ authorization: `Bearer ${vendor.key}`, 'helicone-user-id': TOKEN_ID });
  });

  it('equals what the SDK sends for the same chat as a stream: text, and the time of the first token', async () => {
    const request = { ...REQUEST, stream: true };
    const text = JSON.stringify(RESPONSE);
    const ours = await sentFor(
      requestEvent({ streamed: true, request_body: JSON.stringify(request), response_body: text }),
    );
    const pieces = new ReadableStream({
      start(stream) {
        stream.enqueue(new TextEncoder().encode(text));
        stream.close();
      },
    });
    await sdk.logSingleStream(request, pieces);
    const theirs = taken();
    expect(comparable(ours.log)).to.deep.equal(comparable(theirs.log));
    expect(ours.log.timing.timeToFirstToken).to.equal(1495);
  });

  it('equals what the SDK sends if the caller disconnected, and if the call failed without an error status', async () => {
    const never = new ReadableStream();
    for (const [outcome, fail] of [
      ['client_closed', (log: ReturnType<typeof sdk.logBuilder>) => log.toReadableStream(never as never).cancel()],
      [
        'truncated',
        (log: ReturnType<typeof sdk.logBuilder>) => {
          log.setError(new Error('cut'));
        },
      ],
    ] as const) {
      const builder = sdk.logBuilder(REQUEST);
      await fail(builder);
      await builder.sendLog();
      const theirs = taken();
      const ours = await sentFor(requestEvent({ outcome, request_body: JSON.stringify(REQUEST) }));
      expect(ours.log.providerResponse.status).to.equal(theirs.log.providerResponse.status);
    }
  });

  it('has start and end times', async () => {
    const { log } = await sentFor(requestEvent());
    const at = ({ seconds, milliseconds }: Log['timing']['startTime']) => seconds * 1000 + milliseconds;
    expect(new Date(at(log.timing.startTime)).toISOString()).to.equal('2026-11-22T06:00:01.000Z');
    expect(new Date(at(log.timing.endTime)).toISOString()).to.equal('2026-11-22T06:00:02.500Z');
    expect(log.timing.startTime.milliseconds).to.equal(0);
    expect(log.timing.endTime.milliseconds).to.equal(500);
  });

  it('has a request ID that Helicone accepts, the same in headers and `meta`, and different for each event', async () => {
    const TAKEN = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
    const [one, other] = [await sentFor(requestEvent()), await sentFor(requestEvent())];
    expect(one.headers['helicone-request-id']).to.match(TAKEN);
    expect(one.log.providerRequest.meta['Helicone-Request-Id']).to.equal(one.headers['helicone-request-id']);
    expect(other.headers['helicone-request-id']).to.not.equal(one.headers['helicone-request-id']);
  });

  it('has project and outcome in headers, in which no value can inject another header', async () => {
    const event = requestEvent({
      path: '/v1/chat/completions',
      code: 'request_limit_reached',
      outcome: 'refused',
      status: 429,
    });
    const { headers, log } = await sentFor({ ...event, instance: 'høst\r\nx-evil: 1' });
    expect(headers).to.include({
      'helicone-property-event': event.id,
      'helicone-property-project': PROJECT_ID,
      'helicone-property-outcome': 'refused',
      'helicone-property-code': 'request_limit_reached',
      'helicone-property-instance': 'h?st??x-evil: 1',
    });
    expect(headers).to.not.have.property('x-evil');
    expect(log.providerResponse.status).to.equal(429);
  });

  it('has model and usage if there are no bodies, and neither if they are unknown', async () => {
    const { log } = await sentFor(requestEvent());
    expect(log.providerRequest.json).to.deep.equal({ model: 'gpt-test' });
    expect(log.providerResponse.json).to.deep.equal({ model: 'gpt-test', usage: RESPONSE.usage });
    const cached = await sentFor(requestEvent({ usage: { ...NO_USAGE, prompt_tokens: 9, cache_read_tokens: 5 } }));
    expect(cached.log.providerResponse.json).to.deep.include({
      usage: { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: 5 } },
    });
    const unknown = await sentFor(requestEvent({ model: null, usage: NO_USAGE }));
    expect(unknown.log.providerRequest.json).to.deep.equal({});
    expect(unknown.log.providerResponse.json).to.deep.equal({});
  });

  it('has a cut body as text', async () => {
    const cut = '{"model":"gpt-te…[cut: 16 of 900 bytes]';
    const { log } = await sentFor(requestEvent({ request_body: cut, response_body: cut }));
    expect(log.providerRequest.json).to.deep.equal({ model: 'gpt-test', text: cut });
    expect(log.providerResponse).to.include({ textBody: cut }).and.deep.include({ json: {} });
  });

  it('equals what the SDK sends for a custom operation, for changes and for requests that call no model', async () => {
    const change = await sentFor(changeEvent());
    const operation = { _type: 'data' as const, name: 'token.revoked', actor: 'management-token', count: 1 };
    const of = { project_id: PROJECT_ID, token_id: TOKEN_ID };
    await sdk.logRequest({ ...operation, ...of }, (recorder) => {
      recorder.appendResults({ status: 'success' });
      return Promise.resolve();
    });
    const theirs = comparable(taken().log);
    expect(comparable(change.log)).to.deep.equal(theirs);

    const list = await sentFor(requestEvent({ method: 'GET', path: '/v1/models', model: null, usage: NO_USAGE }));
    expect(list.log.providerRequest.json).to.include({ _type: 'data', name: 'GET /v1/models' });
    expect(list.log.providerResponse.json).to.deep.equal({ _type: 'data', name: 'GET /v1/models', status: 'success' });
  });

  it('has the usage of realtime connections and compacted responses', async () => {
    for (const request of [
      { method: 'GET', path: '/v1/realtime', status: 101 },
      { method: 'POST', path: '/v1/responses/compact' },
    ]) {
      const { log } = await sentFor(requestEvent(request));
      expect(log.providerResponse.json).to.deep.include({
        model: 'gpt-test',
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      });
    }
  });

  it('is retried if the response is 200 with an error', async () => {
    vendor.receiver.answer = replies(200, { error: 'could not keep it' });
    expect(await vendor.deliver(...deliveriesOf(requestEvent()))).to.deep.equal([
      { kind: 'retry', why: 'accepted, but the response has an error' },
    ]);
  });

  it('is up to 32 logs at a time, each with its own result', async () => {
    const events = Array.from({ length: 40 }, () => requestEvent());
    let most = 0;
    let now = 0;
    let answer!: () => void;
    const mayAnswer = new Promise<void>((resolve) => (answer = resolve));
    vendor.receiver.answer = async (_req, res, { body }) => {
      most = Math.max(most, ++now);
      await mayAnswer;
      now--;
      if (body.includes(events[11]!.id)) json(res, 503, {}, { 'retry-after': '2' });
      else res.end('ok');
    };
    const delivering = vendor.deliver(...deliveriesOf(...events));
    await eventually('32 logs in flight', () => now === 32);
    answer();
    const results = await delivering;
    expect(most).to.equal(32);
    expect(results.splice(11, 1)).to.deep.equal([{ kind: 'retry', why: 'status 503', afterMs: 2000 }]);
    expect(results).to.deep.equal(Array(39).fill({ kind: 'delivered' }));
  });

  it('does not cause a leak warning of Node with 32 logs in flight', async () => {
    const warnings: string[] = [];
    const note = ({ name }: Error) => warnings.push(name);
    process.on('warning', note);
    try {
      for (let batch = 0; batch < 2; batch++) {
        await vendor.deliver(...deliveriesOf(...Array.from({ length: 40 }, () => requestEvent())));
      }
      await new Promise(setImmediate); // Node emits warnings in the next turn of the event loop.
    } finally {
      process.off('warning', note);
    }
    expect(warnings).to.be.empty;
  });

  it('leaves no listener on the signal that stops the dispatcher', async () => {
    const { signal } = new AbortController();
    await vendor.backend.deliver(deliveriesOf(requestEvent(), requestEvent()), signal);
    expect(getEventListeners(signal, 'abort')).to.be.empty;
  });

  it('is given up 25 s after the start of a batch if the vendor does not respond', async () => {
    vendor.receiver.answer = () => undefined;
    const delivering = vendor.deliver(...deliveriesOf(...Array.from({ length: 200 }, () => requestEvent())));
    await eventually('logs in flight', () => vendor.receiver.received.length === 32);
    vendor.clock.advance(25_000);
    const results = await delivering;
    expect(results.map(({ kind }) => kind)).to.deep.equal(Array(200).fill('retry'));
  });

  it('stops soon if the key is refused', async () => {
    vendor.receiver.answer = replies(401, {});
    const events = Array.from({ length: 200 }, () => requestEvent());
    const failure = await vendor.deliver(...deliveriesOf(...events)).catch((error: unknown) => error);
    expect(failure).to.have.property('name', 'Unauthorized');
    expect(vendor.receiver.received.length).to.be.at.most(64);
  });
});
