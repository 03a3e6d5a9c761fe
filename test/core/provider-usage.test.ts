/** Usage of responses that are cut anywhere, long, repeated or unusual. The formats of all providers: provider-dialects.test.ts. */
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { ContentReaders } from '../../daemon/core/content/content-reader.js';
import { modelUsageOf } from '../../daemon/core/content/token-counts.js';
import type { ContentFacts, ModelUsage } from '../../daemon/core/events.js';
import { openDecoder } from '../../daemon/http/proxy/decoding.js';

interface Answer {
  type: string;
  coding?: string;
  target?: string;
  pieces: readonly Buffer[];
}

function factsOf({ type, coding, target = '/v1/x', pieces }: Answer): ContentFacts {
  const reader = new ContentReaders({ openDecoder, clock: { monotonic: () => 0 }, maxCaptured: null }).begin('p');
  reader.responseStarted(type, coding ?? null);
  for (const piece of pieces) reader.piece(piece);
  const facts = reader.facts({
    isServed: true,
    method: 'POST',
    requestType: () => 'application/json',
    target,
    upstreamKey: null,
  });
  return { ...facts, usage: modelUsageOf(facts.usage) };
}

const used = (
  [promptTokens, completionTokens, totalTokens]: readonly (number | null)[],
  [cacheReadTokens, cacheWriteTokens]: readonly (number | null)[] = [],
): ModelUsage => ({
  promptTokens: promptTokens ?? null,
  completionTokens: completionTokens ?? null,
  totalTokens: totalTokens ?? null,
  cacheReadTokens: cacheReadTokens ?? null,
  cacheWriteTokens: cacheWriteTokens ?? null,
});

const named = (event: string, data: object) => `event: ${event}\ndata: ${JSON.stringify({ type: event, ...data })}\n\n`;

/** A stream of Anthropic's Messages API. */
function messageStream(start: object, delta: object): string {
  const message = { model: 'claude-opus-5', id: 'msg_1', type: 'message', role: 'assistant', content: [] };
  return [
    named('message_start', { message: { ...message, stop_reason: null, stop_sequence: null, usage: start } }),
    named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    named('ping', {}),
    named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'the "usage": {"input_tokens": 9}' } }),
    named('content_block_stop', { index: 0 }),
    named('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: delta }),
    named('message_stop', {}),
  ].join('');
}

const GEMINI_PARTS = [
  {
    candidates: [{ content: { parts: [{ text: 'a "usageMetadata": {' }], role: 'model' }, index: 0 }],
    usageMetadata: { promptTokenCount: 1200, totalTokenCount: 1200, cachedContentTokenCount: 1000 },
    modelVersion: 'gemini-2.5-flash',
    responseId: 'r1',
  },
  {
    candidates: [{ content: { parts: [{ text: 'b' }], role: 'model' }, finishReason: 'STOP', index: 0 }],
    usageMetadata: {
      promptTokenCount: 1200,
      candidatesTokenCount: 30,
      totalTokenCount: 1300,
      cachedContentTokenCount: 1000,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 1200 }],
      thoughtsTokenCount: 70,
    },
    modelVersion: 'gemini-2.5-flash',
    responseId: 'r1',
  },
];
const OF_GEMINI = used([1200, 100, 1300], [1000]);

const STREAMS: Record<string, { text: string; model: string; usage: ModelUsage }> = {
  "Anthropic's Messages API": {
    text: messageStream(
      {
        ...{ input_tokens: 29, cache_creation_input_tokens: 90, cache_read_input_tokens: 500, output_tokens: 2 },
        cache_creation: { ephemeral_5m_input_tokens: 30, ephemeral_1h_input_tokens: 60 },
      },
      { output_tokens: 77 },
    ),
    model: 'claude-opus-5',
    usage: used([619, 77, 696], [500, 90]),
  },
  "Anthropic's Messages API, with all counts at the end": {
    text: messageStream(
      { input_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 },
      { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 4, output_tokens: 20 },
    ),
    model: 'claude-opus-5',
    usage: used([14, 20, 34], [4, 0]),
  },
  "Anthropic's Messages API of an older version": {
    text: messageStream({ input_tokens: 25, output_tokens: 1 }, { output_tokens: 15 }),
    model: 'claude-opus-5',
    usage: used([25, 15, 40]),
  },
  'Gemini (alt=sse)': {
    text: GEMINI_PARTS.map((part) => `data: ${JSON.stringify(part)}\r\n\r\n`).join(''),
    model: 'gemini-2.5-flash',
    usage: OF_GEMINI,
  },
};

describe('usage of a stream', () => {
  for (const [what, { text, model, usage }] of Object.entries(STREAMS)) {
    const type = 'text/event-stream; charset=utf-8';
    const bytes = Buffer.from(text);

    it(`${what}: in two chunks, cut anywhere`, () => {
      for (let at = 1; at < bytes.length; at++) {
        const facts = factsOf({ type, pieces: [bytes.subarray(0, at), bytes.subarray(at)] });
        expect(facts, `cut at ${at}`).to.include({ model }).and.to.deep.include({ usage });
      }
    });
  }

  it('that is repeated in every event is the last one, whatever is in between', () => {
    const part = (candidatesTokenCount: number) => ({
      ...GEMINI_PARTS[0],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount, totalTokenCount: 10 + candidatesTokenCount },
    });
    const event = (data: object) => `data: ${JSON.stringify(data)}\r\n\r\n`;
    const whole = [1, 2, 3].map((count) => event(part(count)));
    const last = event(part(4));
    for (const texts of [
      [...whole, last],
      [...whole, ': comment\n\n', last],
      [...whole, last.slice(0, 90), last.slice(90)],
      [...whole, last, event({ usageMetadata: { trafficType: 'ON_DEMAND' } }).slice(0, 30)],
      [whole[0] ?? '', last, ': keep-alive\n\n', 'data: {"candidates": []}\n\n'],
    ]) {
      const facts = factsOf({ type: 'text/event-stream', pieces: texts.map((text) => Buffer.from(text)) });
      expect(facts.usage, texts.join('')).to.deep.equal(used([10, 4, 14]));
    }
  });

  it('that Anthropic began and a client left has the counts so far', () => {
    const start = messageStream({ input_tokens: 3, cache_read_input_tokens: 5, output_tokens: 1 }, {});
    const pieces = [Buffer.from(start.slice(0, start.indexOf('event: message_delta')))];
    expect(factsOf({ type: 'text/event-stream', pieces }).usage).to.deep.equal(used([8, 1, 9], [5]));
  });

  it('has the first event of Anthropic even if many later ones in the same chunk have a usage', () => {
    const start = messageStream(
      { input_tokens: 3, cache_read_input_tokens: 5, output_tokens: 1 },
      { output_tokens: 2 },
    );
    const more = [3, 4, 5, 6, 7].map((output_tokens) =>
      named('message_delta', { delta: {}, usage: { output_tokens } }),
    );
    const pieces = [Buffer.from(start + more.join(''))];
    expect(factsOf({ type: 'text/event-stream', pieces }).usage).to.deep.equal(used([8, 7, 15], [5]));
  });
});

/** A long text, so that only the beginning and the end of the response are buffered. */
const LONG = 'x'.repeat(200_000);

const RESPONSES: Record<string, { body: unknown; model: string | null; usage: ModelUsage | null; target?: string }> = {
  "Anthropic's count of tokens, which uses none": { body: { input_tokens: 2095 }, model: null, usage: null },
  'a long stream of Gemini as a list': {
    body: [{ candidates: [{ content: { parts: [{ text: LONG }] } }] }, ...GEMINI_PARTS],
    model: 'gemini-2.5-flash',
    usage: OF_GEMINI,
  },
  'a stream of Gemini as a formatted list': {
    body: `${JSON.stringify(GEMINI_PARTS, null, 2)}\r\n`,
    model: 'gemini-2.5-flash',
    usage: OF_GEMINI,
  },
  'a model of OpenAI': { body: { id: 'gpt-5', object: 'model' }, target: '/v1/models/gpt-5', model: null, usage: null },
  "a gateway that adds Anthropic's counts to OpenAI's, which include them": {
    body: {
      model: 'm',
      usage: {
        ...{ prompt_tokens: 100, completion_tokens: 3, total_tokens: 103 },
        ...{ cache_read_input_tokens: 60, cache_creation_input_tokens: 30 },
      },
    },
    model: 'm',
    usage: used([100, 3, 103], [60, 30]),
  },
};

describe('usage of a response', () => {
  for (const [what, { body, model, usage, target }] of Object.entries(RESPONSES)) {
    it(`${what}: plain, in pieces, and compressed`, () => {
      const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
      const answer = { type: 'application/json; charset=UTF-8', ...(target !== undefined && { target }) };
      const halves = [bytes.subarray(0, bytes.length / 2), bytes.subarray(bytes.length / 2)];
      for (const given of [
        { ...answer, pieces: [bytes] },
        { ...answer, pieces: halves },
        { ...answer, pieces: [gzipSync(bytes)], coding: 'gzip' },
      ]) {
        const facts = factsOf(given);
        expect(facts.model).to.equal(model);
        expect(facts.usage).to.deep.equal(usage);
      }
    });
  }

  for (const [what, text] of Object.entries({
    'a list without objects': '[1,2]',
    'a list of lists': '[[{"usageMetadata":{"promptTokenCount":1}}]]',
    'a member of a nested object': '[{"a":{"usageMetadata":{"promptTokenCount":1}}}]',
    'a value that is no object': '{"usageMetadata":[{"promptTokenCount":1}]}',
    'counts that are none':
      '{"usageMetadata":{"promptTokenCount":"1","totalTokenCount":-1,"candidatesTokenCount":0.5}}',
  })) {
    it(`has none in ${what}`, () => {
      expect(factsOf({ type: 'application/json', pieces: [Buffer.from(text)] }).usage).to.equal(null);
    });
  }
});
