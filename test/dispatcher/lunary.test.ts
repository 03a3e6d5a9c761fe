import { expect } from 'chai';
import lunary from 'lunary';
import { monitorOpenAI } from 'lunary/openai';
import OpenAI from 'openai';
import type { RequestEventJson } from '../../daemon/store/event-json.js';
import { changeEvent, deliveriesOf, NO_USAGE, requestEvent, TOKEN_ID } from '../support/event-json.js';
import { json, type Provider, type Received, replies, startProvider } from '../support/provider.js';
import { behavesAsVendor, Vendor } from './vendor.js';

const PATH = '/v1/runs/ingest';

type Event = Record<string, unknown> & { runId: string };
interface Ingest {
  events: Event[];
}

const eventsIn = ({ body }: Received) => (JSON.parse(body.toString()) as Ingest).events;
const successesOf = (received: Received) => ({
  results: eventsIn(received).map(({ runId }) => ({ id: runId, success: true })),
});

const without = (event: Event, ...names: string[]) =>
  Object.fromEntries(Object.entries(event).filter(([name]) => !names.includes(name))) as Event;

behavesAsVendor({
  service: 'lunary',
  path: PATH,
  accept: (res, received) => {
    json(res, 200, successesOf(received));
  },
  keyOf: ({ id }) => id,
});

describe('what the lunary backend sends', () => {
  let vendor: Vendor;
  let provider: Provider;
  let openai: OpenAI;

  beforeEach(async () => {
    vendor = new Vendor();
    await vendor.open('lunary');
    vendor.receiver.answer = (_req, res, received) => {
      json(res, 200, successesOf(received));
    };
    provider = await startProvider();
    openai = new OpenAI({ apiKey: 'sk-none', baseURL: `${provider.url}/v1`, maxRetries: 0 });
    lunary.init({ publicKey: vendor.key, apiUrl: vendor.receiver.url });
  });
  afterEach(async () => {
    await vendor.close();
    await provider.stop();
  });

  /** What the SDK sends for a chat, without the parts that differ between runs. */
  async function recorded(chat: OpenAI.ChatCompletionCreateParamsNonStreaming): Promise<Event[]> {
    vendor.receiver.received.length = 0;
    await Promise.resolve(monitorOpenAI(openai).chat.completions.create(chat)).catch(() => undefined);
    await lunary.flush();
    const sent = vendor.receiver.received.flatMap(eventsIn);
    expect(vendor.receiver.received[0]).to.include({ method: 'POST', url: PATH });
    expect(vendor.receiver.received[0]!.headers).to.include({
      authorization: `Bearer ${vendor.key}`,
      'content-type': 'application/json',
    });
    expect(new Set(sent.map(({ runId }) => runId)).size).to.equal(1);
    expect(sent.map(({ timestamp }) => typeof timestamp)).to.deep.equal(['number', 'number']);
    return sent.map(comparable);
  }

  function comparable(event: Event): Event {
    return without(event, 'runId', 'timestamp', 'runtime');
  }

  async function sentFor(event: RequestEventJson): Promise<Event[]> {
    vendor.receiver.received.length = 0;
    expect(await vendor.deliver(...deliveriesOf(event))).to.deep.equal([{ kind: 'delivered' }]);
    return vendor.receiver.received.flatMap(eventsIn);
  }

  const CHAT: OpenAI.ChatCompletionCreateParamsNonStreaming = {
    model: 'gpt-test',
    temperature: 0.5,
    max_completion_tokens: 20,
    messages: [
      { role: 'system', content: 'You are terse.' },
      { role: 'user', content: 'Hello' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'done' },
    ],
  };

  it('equals what the SDK sends for the same chat, plus user and metadata', async () => {
    const answered: string[] = [];
    provider.answer = (_req, res) => {
      const body = {
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1_700_000_000,
        model: 'gpt-test',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hi', refusal: null }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      };
      answered.push(JSON.stringify(body));
      json(res, 200, body);
    };
    const theirs = await recorded(CHAT);

    const event = requestEvent({ request_body: provider.received[0]!.body.toString(), response_body: answered[0]! });
    const ours = await sentFor(event);
    const { userId, metadata, ...start } = comparable(ours[0]!);
    expect([start, comparable(ours[1]!)]).to.deep.equal(theirs);
    expect(userId).to.equal(TOKEN_ID);
    expect(metadata).to.include({ requestId: 'req-1', outcome: 'ok', status: 200, cache: 'miss', firstByteMs: 1495 });
    expect(ours.map(({ runId, timestamp, runtime }) => ({ runId, timestamp, runtime }))).to.deep.equal([
      { runId: event.id, timestamp: Date.parse('2026-11-22T06:00:01.000Z'), runtime: 'llmp' },
      { runId: event.id, timestamp: Date.parse('2026-11-22T06:00:02.500Z'), runtime: 'llmp' },
    ]);
  });

  it('has user and metadata where the SDK has them', async () => {
    await lunary.wrapModel(() => Promise.resolve('Hi'), {
      nameParser: () => 'gpt-test',
      inputParser: () => 'Hello',
      userId: TOKEN_ID,
      metadata: { requestId: 'req-1' },
    })();
    await lunary.flush();
    const [theirs] = vendor.receiver.received.flatMap(eventsIn);
    const [ours] = await sentFor(requestEvent());
    for (const start of [theirs, ours])
      expect(start).to.include({ userId: TOKEN_ID }).and.have.nested.property('metadata.requestId', 'req-1');
  });

  it('reports a failure as the SDK does, but with a code', async () => {
    provider.answer = replies(404, {
      error: { message: 'no such model', type: 'invalid_request_error', code: 'model_not_found' },
    });
    const theirs = await recorded(CHAT);

    const refusedThere = { status: 404, outcome: 'upstream_refused', usage: NO_USAGE } as const;
    const ours = await sentFor(requestEvent({ request_body: JSON.stringify(CHAT), ...refusedThere }));
    expect(without(comparable(ours[0]!), 'userId', 'metadata')).to.deep.equal(theirs[0]);
    expect(comparable(ours[1]!)).to.deep.equal({ ...theirs[1], error: { message: '404' } });
    const refused = await sentFor(requestEvent({ status: 429, code: 'request_limit_reached', outcome: 'refused' }));
    expect(refused[1]!['error']).to.deep.equal({ message: 'request_limit_reached' });
  });

  it('has no input, output and parameters without bodies, and no unknown usage', async () => {
    const [start, end] = await sentFor(requestEvent({ usage: NO_USAGE, model: null }));
    expect(start).to.not.have.any.keys('input', 'params', 'name');
    expect(end).to.not.have.any.keys('output', 'tokensUsage', 'name');
    const [, half] = await sentFor(requestEvent({ usage: { ...NO_USAGE, prompt_tokens: 7, source: 'provider' } }));
    expect(half!['tokensUsage']).to.deep.equal({ prompt: 7 });
    const cached = { ...NO_USAGE, prompt_tokens: 9, cache_read_tokens: 5, cache_write_tokens: 2 };
    const [, end2] = await sentFor(requestEvent({ usage: cached }));
    expect(end2!['tokensUsage']).to.deep.equal({ prompt: 9, promptCached: 7 });
  });

  it('has a cut body as text', async () => {
    const cut = '{"model":"gpt-te…[cut: 16 of 900 bytes]';
    const [start, end] = await sentFor(requestEvent({ request_body: cut, response_body: cut }));
    expect(start!['input']).to.equal(cut);
    expect(end!['output']).to.equal(cut);
  });

  it('is of type embed for embeddings, and of type tool for requests that call no model', async () => {
    const body = { request_body: '{"model":"e","input":"words"}' };
    const [embedding] = await sentFor(requestEvent({ path: '/v1/embeddings', ...body }));
    expect(embedding).to.include({ type: 'embed', input: 'words' });
    const [list] = await sentFor(requestEvent({ method: 'GET', path: '/v1/models', model: null, usage: NO_USAGE }));
    expect(list).to.include({ type: 'tool', name: 'GET /v1/models' });
  });

  it('is of type llm, with its usage, for realtime connections and compacted responses', async () => {
    for (const request of [
      { method: 'GET', path: '/v1/realtime', status: 101 },
      { method: 'POST', path: '/v1/responses/compact' },
    ]) {
      const [start, end] = await sentFor(requestEvent(request));
      expect(start).to.include({ type: 'llm', name: 'gpt-test' });
      expect(end!['tokensUsage']).to.deep.equal({ prompt: 3, completion: 2 });
    }
  });

  it('is not sent in parts any more if the vendor becomes unavailable during the search for a refused event', async () => {
    vendor.receiver.answer = (_req, res) => {
      json(res, vendor.receiver.received.length === 1 ? 400 : 503, {});
    };
    const results = await vendor.deliver(...deliveriesOf(...Array.from({ length: 8 }, () => requestEvent())));
    expect(results).to.deep.equal(Array(8).fill({ kind: 'retry', why: 'status 503' }));
    expect(vendor.receiver.received).to.have.length(2);
  });

  it('is nothing for a change, which Lunary does not support', async () => {
    expect(await vendor.deliver(...deliveriesOf(changeEvent()))).to.deep.equal([{ kind: 'delivered' }]);
    expect(vendor.receiver.received).to.be.empty;
  });

  describe('from its response', () => {
    const answerWith = (resultsOf: (events: Event[]) => unknown) => {
      vendor.receiver.answer = (_req, res, received) => {
        json(res, 200, resultsOf(eventsIn(received)));
      };
    };

    it('a run that exists already counts as delivered', async () => {
      answerWith((events) => ({
        results: events.map(({ runId, event }) =>
          event === 'start'
            ? { id: runId, success: false, error: 'Run with this ID already exists in the database.' }
            : { id: runId, success: true },
        ),
      }));
      expect(await vendor.deliver(...deliveriesOf(requestEvent()))).to.deep.equal([{ kind: 'delivered' }]);
    });

    it('only the refused run is rejected', async () => {
      const [good, bad] = [requestEvent(), requestEvent()];
      answerWith((events) => ({
        results: events.map(({ runId, event }) =>
          runId === bad.id && event === 'start'
            ? { id: runId, success: false, error: 'invalid input syntax' }
            : { id: runId, success: true },
        ),
      }));
      expect(await vendor.deliver(...deliveriesOf(good, bad))).to.deep.equal([
        { kind: 'delivered' },
        { kind: 'rejected', why: 'refused in an accepted batch' },
      ]);
      expect(vendor.receiver.received).to.have.length(1);
    });

    it('a run without a result, and a response without results, are retried', async () => {
      answerWith(() => ({ results: [] }));
      expect((await vendor.deliver(...deliveriesOf(requestEvent())))[0]).to.include({ kind: 'retry' });
      answerWith(() => ({ message: 'welcome to this hotel' }));
      expect((await vendor.deliver(...deliveriesOf(requestEvent())))[0]).to.include({ kind: 'retry' });
    });
  });
});
