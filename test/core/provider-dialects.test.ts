/**
 * The usage of a response of each provider and API in docs/providers.md. The figures beside each response were worked out by hand from
 * the provider's documentation: [prompt, completion, total, cache read, cache write].
 */
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { ContentReaders } from '../../daemon/core/content/content-reader.js';
import { modelUsageOf } from '../../daemon/core/content/token-counts.js';
import type { ModelUsage } from '../../daemon/core/events.js';
import { openDecoder } from '../../daemon/http/proxy/decoding.js';

type Figures = readonly [number | null, number | null, number | null, (number | null)?, (number | null)?];

interface Dialect {
  path: string;
  /** A JSON body, or the data of the events of a stream, after the name of each event if it has one. */
  json?: unknown;
  events?: readonly (object | string | readonly [string, object])[];
  model: string | null;
  figures: Figures;
}

const CHAT = '/v1/chat/completions';
const usage = ([promptTokens, completionTokens, totalTokens, read = null, write = null]: Figures): ModelUsage => ({
  ...{ promptTokens, completionTokens, totalTokens },
  ...{ cacheReadTokens: read, cacheWriteTokens: write },
});
const delta = (content: string, more: object = {}) => ({
  ...{ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm-1' },
  ...{ choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more },
});
/** 90 KB, with everything that could be mistaken. */
const LONG = `"usage":{"prompt_tokens":9999}, \\ "model":"liar" ${'lorem ipsum '.repeat(7_500)}`;

const DIALECTS: Record<string, Dialect> = {
  'OpenAI: chat completion': {
    path: CHAT,
    json: {
      ...{ id: 'c1', object: 'chat.completion', model: 'gpt-5-2025-08-07' },
      choices: [{ index: 0, message: { role: 'assistant', content: LONG }, finish_reason: 'stop' }],
      usage: {
        ...{ prompt_tokens: 1117, completion_tokens: 46, total_tokens: 1163 },
        prompt_tokens_details: { cached_tokens: 1024, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 40 },
      },
    },
    model: 'gpt-5-2025-08-07',
    figures: [1117, 46, 1163, 1024],
  },
  'OpenAI: chat completion as a stream': {
    path: CHAT,
    events: [
      delta('a', { usage: null }),
      delta(LONG, { usage: null }),
      { ...delta(''), choices: [], usage: { prompt_tokens: 19, completion_tokens: 10, total_tokens: 29 } },
      '[DONE]',
    ],
    model: 'm-1',
    figures: [19, 10, 29],
  },
  'OpenAI: completion': {
    path: '/v1/completions',
    json: {
      ...{ object: 'text_completion', model: 'gpt-3.5-turbo-instruct', choices: [{ text: 'x' }] },
      usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 },
    },
    model: 'gpt-3.5-turbo-instruct',
    figures: [5, 7, 12],
  },
  'OpenAI: embeddings': {
    path: '/v1/embeddings',
    json: {
      object: 'list',
      data: Array.from({ length: 40 }, (_, index) => ({
        ...{ object: 'embedding', index },
        embedding: Array.from({ length: 1536 }, (_, n) => Math.sin(index * 1536 + n)),
      })),
      model: 'text-embedding-3-small',
      usage: { prompt_tokens: 80, total_tokens: 80 },
    },
    model: 'text-embedding-3-small',
    figures: [80, null, 80],
  },
  'OpenAI: response': {
    path: '/v1/responses',
    json: {
      ...{ id: 'resp_1', object: 'response', status: 'completed', error: null, model: 'gpt-5' },
      output: [{ type: 'message', content: [{ type: 'output_text', text: LONG }] }],
      usage: {
        ...{ input_tokens: 328, output_tokens: 52, total_tokens: 380 },
        ...{ input_tokens_details: { cached_tokens: 256 }, output_tokens_details: { reasoning_tokens: 0 } },
      },
      metadata: { usage: 'none', model: 'liar' },
    },
    model: 'gpt-5',
    figures: [328, 52, 380, 256],
  },
  'OpenAI: response as a stream': {
    path: '/v1/responses',
    events: [
      [
        'response.created',
        { type: 'response.created', response: { id: 'r', model: 'gpt-5', error: null, usage: null } },
      ],
      ['response.output_text.delta', { type: 'response.output_text.delta', delta: 'Hi' }],
      [
        'response.completed',
        {
          type: 'response.completed',
          response: {
            ...{ id: 'r', model: 'gpt-5', error: null, output: [{ text: LONG }] },
            usage: {
              input_tokens: 37,
              output_tokens: 11,
              total_tokens: 48,
              input_tokens_details: { cached_tokens: 0 },
            },
            metadata: {},
          },
        },
      ],
    ],
    model: 'gpt-5',
    figures: [37, 11, 48, 0],
  },
  'OpenAI: run of an assistant as a stream': {
    path: '/v1/threads/thread_1/runs',
    events: [
      ['thread.run.created', { id: 'run_1', object: 'thread.run', model: 'gpt-4o', usage: null }],
      [
        'thread.run.step.completed',
        {
          id: 'step_1',
          object: 'thread.run.step',
          usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 },
        },
      ],
      [
        'thread.run.completed',
        {
          ...{ id: 'run_1', object: 'thread.run', model: 'gpt-4o' },
          usage: { prompt_tokens: 45, completion_tokens: 12, total_tokens: 57 },
        },
      ],
      '[DONE]',
    ],
    model: 'gpt-4o',
    figures: [45, 12, 57],
  },
  'OpenAI: images': {
    path: '/v1/images/generations',
    json: {
      created: 1,
      data: [{ b64_json: 'A'.repeat(200_000) }],
      usage: {
        ...{ total_tokens: 100, input_tokens: 50, output_tokens: 50 },
        input_tokens_details: { text_tokens: 10, image_tokens: 40 },
      },
    },
    model: null,
    figures: [50, 50, 100],
  },
  'OpenAI: transcription': {
    path: '/v1/audio/transcriptions',
    json: { text: 'Hey', usage: { type: 'tokens', input_tokens: 14, output_tokens: 101, total_tokens: 115 } },
    model: null,
    figures: [14, 101, 115],
  },
  'OpenAI: speech as a stream': {
    path: '/v1/audio/speech',
    events: [
      { type: 'speech.audio.delta', audio: 'AAAA'.repeat(30_000) },
      { type: 'speech.audio.done', usage: { input_tokens: 14, output_tokens: 101, total_tokens: 115 } },
    ],
    model: null,
    figures: [14, 101, 115],
  },
  'Azure OpenAI: chat completion as a stream': {
    path: '/openai/deployments/d/chat/completions',
    events: [
      { choices: [], created: 0, id: '', model: '', object: '', prompt_filter_results: [{ prompt_index: 0 }] },
      delta('a', { model: 'gpt-4o-2024-11-20' }),
      { ...delta(''), choices: [], usage: { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 } },
      '[DONE]',
    ],
    model: 'gpt-4o-2024-11-20',
    figures: [8, 2, 10],
  },
  'Anthropic: message': {
    path: '/v1/messages',
    json: {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5' },
      ...{ content: [{ type: 'text', text: LONG }], stop_reason: 'end_turn' },
      usage: {
        ...{ input_tokens: 2095, cache_creation_input_tokens: 248, cache_read_input_tokens: 1800, output_tokens: 503 },
        ...{ cache_creation: { ephemeral_5m_input_tokens: 248 }, service_tier: 'standard' },
      },
    },
    model: 'claude-sonnet-4-5',
    figures: [4143, 503, 4646, 1800, 248], // 2095 + 248 + 1800; 4143 + 503
  },
  'Anthropic: message as a stream': {
    path: '/v1/messages',
    events: [
      [
        'message_start',
        {
          type: 'message_start',
          message: {
            ...{ id: 'msg_1', type: 'message', model: 'claude-sonnet-4-5', content: [] },
            usage: { input_tokens: 25, cache_read_input_tokens: 100, cache_creation_input_tokens: 0, output_tokens: 1 },
          },
        },
      ],
      ['ping', { type: 'ping' }],
      ['content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: LONG } }],
      ['message_delta', { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 15 } }],
      ['message_stop', { type: 'message_stop' }],
    ],
    model: 'claude-sonnet-4-5',
    figures: [125, 15, 140, 100, 0], // 25 + 100 + 0; 125 + 15
  },
  'Anthropic, whose last event repeats the input as 0': {
    path: '/v1/messages',
    events: [
      [
        'message_start',
        { type: 'message_start', message: { model: 'c', usage: { input_tokens: 15, output_tokens: 1 } } },
      ],
      [
        'message_delta',
        { type: 'message_delta', usage: { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 9 } },
      ],
    ],
    model: 'c',
    figures: [15, 9, 24, 0],
  },
  'Gemini: generateContent': {
    path: '/v1beta/models/gemini-2.5-pro:generateContent',
    json: {
      candidates: [{ content: { parts: [{ text: LONG }], role: 'model' }, finishReason: 'STOP' }],
      usageMetadata: {
        ...{ promptTokenCount: 264, toolUsePromptTokenCount: 36, candidatesTokenCount: 20, thoughtsTokenCount: 80 },
        ...{ totalTokenCount: 400, cachedContentTokenCount: 200 },
      },
      modelVersion: 'gemini-2.5-pro',
    },
    model: 'gemini-2.5-pro',
    figures: [300, 100, 400, 200], // 264 + 36; 20 + 80
  },
  'Gemini: streamGenerateContent, as events': {
    path: '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
    events: [3, 9, 14].map((candidatesTokenCount) => ({
      candidates: [{ content: { parts: [{ text: 'x' }] } }],
      usageMetadata: { promptTokenCount: 8, candidatesTokenCount, totalTokenCount: 8 + candidatesTokenCount },
      modelVersion: 'gemini-2.5-pro',
    })),
    model: 'gemini-2.5-pro',
    figures: [8, 14, 22],
  },
  'Gemini: streamGenerateContent, as a list': {
    path: '/v1beta/models/gemini-2.5-pro:streamGenerateContent',
    json: [3, 14].map((candidatesTokenCount) => ({
      candidates: [{ content: { parts: [{ text: LONG }] } }],
      usageMetadata: { promptTokenCount: 8, candidatesTokenCount, totalTokenCount: 8 + candidatesTokenCount },
      modelVersion: 'gemini-2.5-pro',
    })),
    model: 'gemini-2.5-pro',
    figures: [8, 14, 22],
  },
  'Gemini: embedContent': {
    path: '/v1beta/models/gemini-embedding-001:embedContent',
    json: { embedding: { values: [0.1, 0.2] }, usageMetadata: { promptTokenCount: 6, totalTokenCount: 6 } },
    model: 'gemini-embedding-001',
    figures: [6, null, 6],
  },
  'Mistral, whose usage precedes the choices': {
    path: CHAT,
    json: {
      ...{ id: 'c1', created: 1, model: 'mistral-small-latest' },
      usage: { prompt_tokens: 13, total_tokens: 316, completion_tokens: 303 },
      object: 'chat.completion',
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: LONG } }],
    },
    model: 'mistral-small-latest',
    figures: [13, 303, 316],
  },
  'Perplexity, whose usage precedes the choices of an event': {
    path: CHAT,
    events: [
      {
        ...{ id: 'c1', model: 'sonar', created: 1 },
        usage: { prompt_tokens: 14, completion_tokens: 21, total_tokens: 35, search_context_size: 'low' },
        ...{ citations: ['https://example.com'], object: 'chat.completion.chunk' },
        choices: [{ index: 0, delta: { content: LONG } }],
      },
    ],
    model: 'sonar',
    figures: [14, 21, 35],
  },
  'Groq, as a stream': {
    path: '/openai/v1/chat/completions',
    events: [
      delta('a', { x_groq: { id: 'req_1' } }),
      {
        ...delta('', { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
        x_groq: {
          id: 'req_1',
          usage: { queue_time: 0.1, prompt_tokens: 24, prompt_time: 0.01, completion_tokens: 88, total_tokens: 112 },
        },
      },
      '[DONE]',
    ],
    model: 'm-1',
    figures: [24, 88, 112],
  },
  'Kimi, as a stream': {
    path: CHAT,
    events: [
      delta('a'),
      delta('', {
        choices: [
          {
            ...{ index: 0, delta: {}, finish_reason: 'stop' },
            usage: { prompt_tokens: 19, completion_tokens: 13, total_tokens: 32 },
          },
        ],
      }),
      '[DONE]',
    ],
    model: 'm-1',
    figures: [19, 13, 32],
  },
  DeepSeek: {
    path: CHAT,
    json: {
      ...{ model: 'deepseek-chat', choices: [{ message: { content: LONG } }] },
      usage: {
        ...{ prompt_tokens: 100, completion_tokens: 30, total_tokens: 130 },
        ...{ prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 36 },
      },
    },
    model: 'deepseek-chat',
    figures: [100, 30, 130, 64],
  },
  'OpenRouter, as a stream': {
    path: '/api/v1/chat/completions',
    events: [
      delta('a', { provider: 'Anthropic' }),
      delta('', {
        usage: {
          ...{ prompt_tokens: 194, completion_tokens: 2, total_tokens: 196, cost: 0.95, is_byok: false },
          prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 50 },
          cost_details: { upstream_inference_cost: null },
        },
      }),
      '[DONE]',
    ],
    model: 'm-1',
    figures: [194, 2, 196, 100, 50],
  },
  'Together AI': {
    path: CHAT,
    json: {
      ...{ id: 'c', object: 'chat.completion', model: 'meta-llama/Llama-3.3-70B', prompt: [] },
      ...{ choices: [{ text: 'x' }], usage: { prompt_tokens: 11, completion_tokens: 6, total_tokens: 17 } },
    },
    model: 'meta-llama/Llama-3.3-70B',
    figures: [11, 6, 17],
  },
  'vLLM, with usage in each event': {
    path: CHAT,
    events: [
      ...[1, 2, 3].map((completion_tokens) =>
        delta('a', { usage: { prompt_tokens: 7, total_tokens: 7 + completion_tokens, completion_tokens } }),
      ),
      {
        ...delta('', { choices: [] }),
        usage: { prompt_tokens: 7, total_tokens: 11, completion_tokens: 4, prompt_tokens_details: null },
      },
      '[DONE]',
    ],
    model: 'm-1',
    figures: [7, 4, 11],
  },
  Ollama: {
    path: CHAT,
    json: {
      ...{ id: 'chatcmpl-1', object: 'chat.completion', model: 'llama3.2', system_fingerprint: 'fp_ollama' },
      ...{ choices: [{ index: 0, message: {} }], usage: { prompt_tokens: 26, completion_tokens: 9, total_tokens: 35 } },
    },
    model: 'llama3.2',
    figures: [26, 9, 35],
  },
};

const CODINGS: Record<string, (body: Buffer) => Buffer> = {
  gzip: gzipSync,
  deflate: deflateSync,
  'deflate (without its header)': deflateRawSync,
  // The quality by default takes seconds for a megabyte.
  br: (body) => brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
};

function bodyOf({ json, events }: Dialect): Buffer {
  if (!events) return Buffer.from(JSON.stringify(json));
  const texts = events.map((event) => {
    const [name, data] = Array.isArray(event) ? (event as [string, object]) : [null, event];
    const line = `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
    return name === null ? line : `event: ${name}\n${line}`;
  });
  return Buffer.from(texts.join(''));
}

function cut(body: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(body.length / size) }, (_, n) => body.subarray(n * size, (n + 1) * size));
}

function read(dialect: Dialect, pieces: readonly Buffer[], coding: string | null) {
  // Each response has a window of its own, as in ordinary traffic.
  const reader = new ContentReaders({ openDecoder, clock: { monotonic: () => 0 }, maxCaptured: null }).begin('p');
  reader.responseStarted(dialect.events ? 'text/event-stream' : 'application/json', coding);
  for (const piece of pieces) reader.piece(piece);
  const { model, usage } = reader.facts({
    ...{ isServed: true, method: 'POST', target: dialect.path },
    ...{ requestType: () => 'application/json', upstreamKey: null },
  });
  return { model, usage: modelUsageOf(usage) };
}

describe('the usage of each provider', () => {
  for (const [what, dialect] of Object.entries(DIALECTS)) {
    const body = bodyOf(dialect);
    const expected = { model: dialect.model, usage: usage(dialect.figures) };

    it(`is that of its documentation: ${what}`, () => {
      for (const size of [body.length, 65_536, 1_000, 7]) {
        expect(read(dialect, cut(body, size), null), `pieces of ${size}`).to.deep.equal(expected);
      }
    });

    it(`is the same if it is compressed: ${what}`, () => {
      for (const [coding, compress] of Object.entries(CODINGS)) {
        const compressed = compress(body);
        for (const size of [compressed.length, 1_000]) {
          const name = coding.split(' ')[0]!;
          expect(read(dialect, cut(compressed, size), name), `${coding}, pieces of ${size}`).to.deep.equal(expected);
        }
      }
    });
  }
});
