import { HeliconeManualLogger } from '@helicone/helpers';
import { expect } from 'chai';
import { getEventListeners } from 'node:events';
import type { EventJson } from '../../daemon/store/event-json.js';
import { changeEvent, deliveriesOf, NO_USAGE, PROJECT_ID, requestEvent, TOKEN_ID } from '../support/event-json.js';
import { eventually } from '../support/eventually.js';
import { json } from '../support/provider.js';
import { isAsRecorded } from './recordings.js';
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

describe('what helicone is sent', () => {
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

  /** What came, and the one log in it. */
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

  /** Without the times, which differ from run to run, and `meta`, which the SDK leaves empty for servers that read the fields. */
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

  it('is what its SDK sends for the same chat', async () => {
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
    isAsRecorded('helicone-chat', comparable(theirs.log));
    expect(comparable(ours.log)).to.deep.equal(comparable(theirs.log));
    expect(only(ours.headers)).to.deep.equal(only(theirs.headers));
    expect(ours.headers).to.include({ authorization: `Bearer ${vendor.key}`, 'helicone-user-id': TOKEN_ID });
  });

  it('is what its SDK sends for the same chat as a stream: text, and when it began', async () => {
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
    isAsRecorded('helicone-stream', comparable(theirs.log));
    expect(comparable(ours.log)).to.deep.equal(comparable(theirs.log));
    expect(ours.log.timing.timeToFirstToken).to.equal(1495);
  });

  it('is what its SDK sends for a caller that left, and for a call that failed by itself', async () => {
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

  it('tells when it began and ended', async () => {
    const { log } = await sentFor(requestEvent());
    const at = ({ seconds, milliseconds }: Log['timing']['startTime']) => seconds * 1000 + milliseconds;
    expect(new Date(at(log.timing.startTime)).toISOString()).to.equal('2026-11-22T06:00:01.000Z');
    expect(new Date(at(log.timing.endTime)).toISOString()).to.equal('2026-11-22T06:00:02.500Z');
    expect(log.timing.startTime.milliseconds).to.equal(0);
    expect(log.timing.endTime.milliseconds).to.equal(500);
  });

  it('has an id that Helicone takes for a request, the same in fields and `meta`, another for each event', async () => {
    const TAKEN = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
    const [one, other] = [await sentFor(requestEvent()), await sentFor(requestEvent())];
    expect(one.headers['helicone-request-id']).to.match(TAKEN);
    expect(one.log.providerRequest.meta['Helicone-Request-Id']).to.equal(one.headers['helicone-request-id']);
    expect(other.headers['helicone-request-id']).to.not.equal(one.headers['helicone-request-id']);
  });

  it('says whose it was and how it went, in fields that no text can break', async () => {
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

  it('has the model and the usage where there are no bodies, and neither where they are unknown', async () => {
    const { log } = await sentFor(requestEvent());
    expect(log.providerRequest.json).to.deep.equal({ model: 'gpt-test' });
    expect(log.providerResponse.json).to.deep.equal({ model: 'gpt-test', usage: RESPONSE.usage });
    const unknown = await sentFor(requestEvent({ model: null, usage: NO_USAGE }));
    expect(unknown.log.providerRequest.json).to.deep.equal({});
    expect(unknown.log.providerResponse.json).to.deep.equal({});
  });

  it('has a body that was cut as text', async () => {
    const cut = '{"model":"gpt-te…[cut: 16 of 900 bytes]';
    const { log } = await sentFor(requestEvent({ request_body: cut, response_body: cut }));
    expect(log.providerRequest.json).to.deep.equal({ model: 'gpt-test', text: cut });
    expect(log.providerResponse).to.include({ textBody: cut }).and.deep.include({ json: {} });
  });

  it('is what its SDK sends of an operation of one’s own, for a change and for what asks no model', async () => {
    const change = await sentFor(changeEvent());
    const operation = { _type: 'data' as const, name: 'token.revoked', actor: 'management-token', count: 1 };
    const of = { project_id: PROJECT_ID, token_id: TOKEN_ID };
    await sdk.logRequest({ ...operation, ...of }, (recorder) => {
      recorder.appendResults({ status: 'success' });
      return Promise.resolve();
    });
    const theirs = comparable(taken().log);
    isAsRecorded('helicone-change', theirs);
    expect(comparable(change.log)).to.deep.equal(theirs);

    const list = await sentFor(requestEvent({ method: 'GET', path: '/v1/models', model: null, usage: NO_USAGE }));
    expect(list.log.providerRequest.json).to.include({ _type: 'data', name: 'GET /v1/models' });
    expect(list.log.providerResponse.json).to.deep.equal({ _type: 'data', name: 'GET /v1/models', status: 'success' });
  });

  it('is tried again when the answer is 200 and an error', async () => {
    vendor.receiver.answer = (_req, res) => {
      json(res, 200, { error: 'could not keep it' });
    };
    expect(await vendor.deliver(...deliveriesOf(requestEvent()))).to.deep.equal([
      { kind: 'retry', why: 'accepted, but the answer has an error' },
    ]);
  });

  it('is a few logs at a time, each with a verdict of its own', async () => {
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
    await eventually('thirty-two wait for an answer', () => now === 32);
    answer();
    const verdicts = await delivering;
    expect(most).to.equal(32);
    expect(verdicts.splice(11, 1)).to.deep.equal([{ kind: 'retry', why: 'status 503', afterMs: 2000 }]);
    expect(verdicts).to.deep.equal(Array(39).fill({ kind: 'delivered' }));
  });

  it('does not make Node warn of a leak while thirty-two logs are under way', async () => {
    const warnings: string[] = [];
    const note = ({ name }: Error) => warnings.push(name);
    process.on('warning', note);
    try {
      for (let batch = 0; batch < 2; batch++) {
        await vendor.deliver(...deliveriesOf(...Array.from({ length: 40 }, () => requestEvent())));
      }
      await new Promise(setImmediate); // Node tells of a warning in the next turn.
    } finally {
      process.off('warning', note);
    }
    expect(warnings).to.be.empty;
  });

  it('keeps nothing of a batch on the signal that stops the dispatcher', async () => {
    const { signal } = new AbortController();
    await vendor.backend.deliver(deliveriesOf(requestEvent(), requestEvent()), signal);
    expect(getEventListeners(signal, 'abort')).to.be.empty;
  });

  it('is given up together, 25 s after the first of a batch, when nothing is answered', async () => {
    vendor.receiver.answer = () => undefined;
    const delivering = vendor.deliver(...deliveriesOf(...Array.from({ length: 200 }, () => requestEvent())));
    await eventually('logs wait for an answer', () => vendor.receiver.received.length === 32);
    vendor.clock.advance(25_000);
    const verdicts = await delivering;
    expect(verdicts.map(({ kind }) => kind)).to.deep.equal(Array(200).fill('retry'));
  });

  it('stops soon when the key is refused', async () => {
    vendor.receiver.answer = (_req, res) => {
      json(res, 401, {});
    };
    const events = Array.from({ length: 200 }, () => requestEvent());
    const failure = await vendor.deliver(...deliveriesOf(...events)).catch((error: unknown) => error);
    expect(failure).to.have.property('name', 'Unauthorized');
    expect(vendor.receiver.received.length).to.be.at.most(64);
  });
});
