/* eslint-disable @typescript-eslint/no-deprecated -- the constants of the GenAI conventions have moved to a repository without a package */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { SpanKind } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import * as conventions from '@opentelemetry/semantic-conventions/incubating';
import { expect } from 'chai';
import type { RequestEventJson } from '../../daemon/store/event-json.js';
import { changeEvent, deliveriesOf, NO_USAGE, PROJECT_ID, requestEvent, TOKEN_ID } from '../support/event-json.js';
import { json, replies } from '../support/provider.js';
import { openCollector, type Span, TRACES, type Traces, valuesOf } from './otlp.js';
import { behavesAsVendor, type Vendor } from './vendor.js';

behavesAsVendor({
  service: 'otlp',
  path: TRACES,
  accept: (res) => {
    json(res, 200, {});
  },
  keyOf: ({ id }) => id.replaceAll('-', ''),
});

describe('a span that a collector gets', () => {
  let vendor: Vendor;

  beforeEach(async () => {
    vendor = await openCollector();
  });
  afterEach(() => vendor.close());

  const lastTraces = () => vendor.bodies<Traces>(TRACES).at(-1)!;

  async function spanFor(event: RequestEventJson): Promise<Span> {
    expect(await vendor.deliver(...deliveriesOf(event))).to.deep.equal([{ kind: 'delivered' }]);
    return lastTraces().resourceSpans[0]!.scopeSpans[0]!.spans[0]!;
  }

  it('equals what the SDK and its exporter send for the same span', async () => {
    const event = requestEvent({ id: '0197f2b0-0000-7000-8000-000000000001' });
    await vendor.deliver(...deliveriesOf(event));
    const exporter = new OTLPTraceExporter({
      url: vendor.receiver.url + TRACES,
      headers: { authorization: `Bearer ${vendor.key}` },
    });
    const provider = new BasicTracerProvider({
      resource: resourceFromAttributes({ 'service.name': 'llmp', 'service.instance.id': 'proxy-1' }),
      idGenerator: {
        generateTraceId: () => '0197f2b0000070008000000000000001',
        generateSpanId: () => '8000000000000001',
      },
      spanProcessors: [new SimpleSpanProcessor(exporter)],
    });
    provider
      .getTracer('llmp', '1.2.3')
      .startSpan('chat gpt-test', {
        kind: SpanKind.CLIENT,
        startTime: new Date('2026-11-22T06:00:01.000Z'),
        attributes: {
          [conventions.ATTR_GEN_AI_OPERATION_NAME]: conventions.GEN_AI_OPERATION_NAME_VALUE_CHAT,
          [conventions.ATTR_GEN_AI_PROVIDER_NAME]: conventions.GEN_AI_PROVIDER_NAME_VALUE_OPENAI,
          [conventions.ATTR_GEN_AI_REQUEST_MODEL]: 'gpt-test',
          [conventions.ATTR_GEN_AI_RESPONSE_MODEL]: 'gpt-test',
          [conventions.ATTR_GEN_AI_USAGE_INPUT_TOKENS]: 3,
          [conventions.ATTR_GEN_AI_USAGE_OUTPUT_TOKENS]: 2,
          'llmp.cost.usd': 0.000345,
          [conventions.ATTR_HTTP_REQUEST_METHOD]: 'POST',
          [conventions.ATTR_URL_PATH]: '/v1/chat/completions',
          [conventions.ATTR_HTTP_RESPONSE_STATUS_CODE]: 200,
          'llmp.project.id': PROJECT_ID,
          'llmp.token.id': TOKEN_ID,
          'llmp.request.id': 'req-1',
          'llmp.upstream.request.id': 'req_upstream_1',
          'llmp.outcome': 'ok',
          'llmp.cache': 'miss',
        },
      })
      .end(new Date('2026-11-22T06:00:02.500Z'));
    await provider.forceFlush();
    await provider.shutdown();
    const [ours, theirs] = vendor.receiver.received;
    const sent = JSON.parse(theirs!.body.toString()) as unknown;
    expect(JSON.parse(ours!.body.toString())).to.deep.equal(sent);
    const { authorization, 'content-type': type } = theirs!.headers;
    expect(ours).to.include({ method: theirs!.method, url: theirs!.url });
    expect(ours!.headers).to.include({ authorization, 'content-type': type, 'user-agent': 'llmp/1.2.3' });
  });

  it('has the daemon that served the request as its resource', async () => {
    const events = [requestEvent(), requestEvent({ instance: 'proxy-2' }), requestEvent()];
    await vendor.deliver(...deliveriesOf(...events));
    const of = lastTraces().resourceSpans.map(({ resource, scopeSpans }) => ({
      instance: valuesOf(resource.attributes)['service.instance.id'],
      spans: scopeSpans[0]!.spans.length,
    }));
    expect(of).to.deep.equal([
      { instance: 'proxy-1', spans: 2 },
      { instance: 'proxy-2', spans: 1 },
    ]);
  });

  for (const [method, path, status, operation, provider] of [
    ['POST', '/v1/chat/completions', 200, 'chat', 'openai'],
    ['POST', '/v1/responses', 200, 'chat', 'openai'],
    ['POST', '/v1/completions', 200, 'text_completion', 'openai'],
    ['POST', '/v1/embeddings', 200, 'embeddings', 'openai'],
    ['POST', '/v1/audio/transcriptions', 200, 'generate_content', 'openai'],
    ['POST', '/v1/unheard/of', 200, 'generate_content', 'openai'],
    ['POST', '/v1/messages', 200, 'chat', 'anthropic'],
    ['POST', '/v1beta/models/gemini-2.5-flash:streamGenerateContent', 200, 'generate_content', 'gcp.gemini'],
    ['POST', '/v1beta/models/gemini-embedding-001:embedContent', 200, 'embeddings', 'gcp.gemini'],
    ['GET', '/v1/realtime', 101, 'generate_content', 'openai'],
    ['GET', '/openai/realtime', 403, 'generate_content', 'openai'],
    ['GET', '/v1/responses', 101, 'chat', 'openai'],
    ['GET', '/ws/google.ai.GenerativeService.BidiGenerateContent', 101, 'generate_content', 'gcp.gemini'],
    ['GET', '/v1/another/socket', 101, 'generate_content', 'openai'],
    ['POST', '/v1/responses/compact', 200, 'chat', 'openai'],
    ['POST', '/v1/agents/completions', 200, 'chat', 'openai'],
    ['POST', '/v1/complete', 200, 'text_completion', 'anthropic'],
    // What a request has stored is read again: its tokens were counted then.
    ['GET', '/v1/responses/resp_1', 200, undefined, undefined],
    ['GET', '/v1/chat/completions', 200, undefined, undefined],
  ] as const) {
    it(`${method} ${path} with status ${status} is ${operation ?? 'no model call'}, with its usage`, async () => {
      const { name, attributes } = await spanFor(requestEvent({ method, path, status }));
      const values = valuesOf(attributes);
      expect(name).to.equal(operation ? `${operation} gpt-test` : method);
      expect(values['gen_ai.operation.name']).to.equal(operation);
      expect(values['gen_ai.provider.name']).to.equal(provider);
      expect(values['gen_ai.usage.input_tokens']).to.equal(operation && 3);
    });
  }

  it('is a plain HTTP request if no model is called', async () => {
    const span = await spanFor(requestEvent({ method: 'GET', path: '/v1/models', model: null, usage: NO_USAGE }));
    expect(span.name).to.equal('GET');
    expect(valuesOf(span.attributes)).to.include({ 'http.request.method': 'GET', 'url.path': '/v1/models' });
    expect(span.attributes.filter(({ key }) => key.startsWith('gen_ai.'))).to.be.empty;
  });

  it('has the error code, the outcome or the status as its error type', async () => {
    for (const [more, type] of [
      [{ outcome: 'refused', code: 'request_limit_reached', status: 429 }, 'request_limit_reached'],
      [{ outcome: 'truncated' }, 'truncated'],
      [{ outcome: 'upstream_error', status: 503 }, '503'],
      [{ outcome: 'upstream_refused', status: 404 }, '404'],
    ] as const) {
      const span = await spanFor(requestEvent(more));
      expect(span.status.code).to.equal(2);
      expect(valuesOf(span.attributes)).to.include({ 'error.type': type });
      expect(valuesOf(span.attributes)).to.not.have.property('gen_ai.response.model');
    }
    expect(valuesOf((await spanFor(requestEvent())).attributes)).to.not.have.property('error.type');
  });

  it('has no status if no response was sent', async () => {
    const span = await spanFor(requestEvent({ outcome: 'client_closed', status: 499 }));
    expect(valuesOf(span.attributes)).to.include({ 'error.type': 'client_closed' });
    expect(valuesOf(span.attributes)).to.not.have.property('http.response.status_code');
  });

  it('has only the usage that is known', async () => {
    const span = await spanFor(requestEvent({ usage: NO_USAGE }));
    expect(span.attributes.filter(({ key }) => key.startsWith('gen_ai.usage.'))).to.be.empty;
    const half = await spanFor(requestEvent({ usage: { ...NO_USAGE, prompt_tokens: 0, source: 'provider' } }));
    expect(valuesOf(half.attributes)).to.include({ 'gen_ai.usage.input_tokens': 0 });
    expect(valuesOf(half.attributes)).to.not.have.property('gen_ai.usage.output_tokens');
  });

  it("has the tokens of the provider's prompt cache", async () => {
    const counts = { prompt_tokens: 9, cache_read_tokens: 5, cache_write_tokens: 0 };
    const span = await spanFor(requestEvent({ usage: { ...NO_USAGE, ...counts } }));
    expect(valuesOf(span.attributes)).to.include({
      [conventions.ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS]: 5,
      [conventions.ATTR_GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS]: 0,
    });
  });

  it('has the requested model and the model of the response', async () => {
    const span = await spanFor(requestEvent({ model: 'gpt-test-0613', request_body: '{"model":"gpt-test"}' }));
    expect(span.name).to.equal('chat gpt-test');
    expect(valuesOf(span.attributes)).to.include({
      'gen_ai.request.model': 'gpt-test',
      'gen_ai.response.model': 'gpt-test-0613',
    });
  });

  it('has the messages of a chat in the format of the conventions, only if there are bodies', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Paris"}' } };
    const request = {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Weather?' },
            { type: 'image_url', image_url: { url: 'u' } },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c1', content: 'rain' },
      ],
    };
    const response = {
      choices: [
        { message: { role: 'assistant', content: 'It rains.' }, finish_reason: 'stop' },
        { message: { role: 'assistant', content: null, tool_calls: [call] }, finish_reason: 'tool_calls' },
      ],
    };
    const span = await spanFor(
      requestEvent({ request_body: JSON.stringify(request), response_body: JSON.stringify(response) }),
    );
    const values = valuesOf(span.attributes);
    const called = { type: 'tool_call', id: 'c1', name: 'weather', arguments: { city: 'Paris' } };
    expect(JSON.parse(String(values['gen_ai.input.messages']))).to.deep.equal([
      {
        role: 'user',
        parts: [
          { type: 'text', content: 'Weather?' },
          { type: 'image_url', image_url: { url: 'u' } },
        ],
      },
      { role: 'assistant', parts: [called] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: 'rain' }] },
    ]);
    expect(JSON.parse(String(values['gen_ai.output.messages']))).to.deep.equal([
      { role: 'assistant', parts: [{ type: 'text', content: 'It rains.' }], finish_reason: 'stop' },
      { role: 'assistant', parts: [called], finish_reason: 'tool_call' },
    ]);
    const bare = await spanFor(requestEvent());
    expect(bare.attributes.filter(({ key }) => key.endsWith('.messages'))).to.be.empty;
  });

  it('has the messages of the responses API', async () => {
    const request = { instructions: 'Be terse.', input: 'Weather?' };
    const response = {
      status: 'completed',
      output: [
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'One moment.' }] },
        { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{}' },
      ],
    };
    const span = await spanFor(
      requestEvent({
        path: '/v1/responses',
        request_body: JSON.stringify(request),
        response_body: JSON.stringify(response),
      }),
    );
    const values = valuesOf(span.attributes);
    expect(JSON.parse(String(values['gen_ai.input.messages']))).to.deep.equal([
      { role: 'user', parts: [{ type: 'text', content: 'Weather?' }] },
    ]);
    const parts = [
      { type: 'text', content: 'One moment.' },
      { type: 'tool_call', id: 'c1', name: 'weather', arguments: {} },
    ];
    expect(JSON.parse(String(values['gen_ai.output.messages']))).to.deep.equal([
      { role: 'assistant', parts, finish_reason: 'stop' },
    ]);
  });

  it('has no messages if the body was cut', async () => {
    const cut = '{"model":"gpt-te…[cut: 16 of 900 bytes]';
    const span = await spanFor(requestEvent({ request_body: cut, response_body: cut }));
    expect(span.attributes.filter(({ key }) => key.endsWith('.messages'))).to.be.empty;
  });

  it('is not sent for a change, which spans cannot express', async () => {
    expect(await vendor.deliver(...deliveriesOf(changeEvent()))).to.deep.equal([{ kind: 'delivered' }]);
    expect(vendor.receiver.received).to.be.empty;
  });

  it('is not sent again if the collector refuses some spans of a batch, which is logged', async () => {
    vendor.receiver.answer = replies(200, {
      partialSuccess: { rejectedSpans: '1', errorMessage: `about ${vendor.key}` },
    });
    const results = await vendor.deliver(...deliveriesOf(requestEvent(), requestEvent()));
    expect(results).to.deep.equal([{ kind: 'delivered' }, { kind: 'delivered' }]);
    expect(vendor.bodies(TRACES)).to.have.length(1);
    expect(vendor.logged).to.have.length(1);
    expect(vendor.logged[0]).to.include('"refused":1').and.not.include(vendor.key);
  });

  it('is rejected if the collector refuses all spans of a batch, and not sent again', async () => {
    vendor.receiver.answer = replies(200, { partialSuccess: { rejectedSpans: 2 } });
    const results = await vendor.deliver(...deliveriesOf(requestEvent(), requestEvent()));
    expect(results.map(({ kind }) => kind)).to.deep.equal(['rejected', 'rejected']);
    expect(vendor.bodies(TRACES)).to.have.length(1);
  });
});
