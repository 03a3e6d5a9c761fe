/**
 * The cost of responses of each provider, from their bytes to the nano-dollar. The figures beside each were worked out by hand from the
 * prices in this file, in USD per million tokens, so that a million tokens at 1 cost 1 USD and one token 1,000 nano-USD.
 */
import { expect } from 'chai';
import { ContentReaders } from '../../../daemon/core/content/content-reader.js';
import { Costs } from '../../../daemon/core/cost/costs.js';
import type { WrittenPrice } from '../../../daemon/core/cost/prices.js';
import { openDecoder } from '../../../daemon/http/proxy/decoding.js';

const PRICES: WrittenPrice[] = [
  { model: 'gpt-5', provider: 'openai', input: '1.25', cacheRead: '0.125', output: '10' },
  { model: 'text-embedding-3-small', provider: 'openai', input: '0.02', output: '0' },
  { model: 'gpt-audio', provider: 'openai', input: '2.5', output: '10', audioInput: '32', audioOutput: '64' },
  {
    ...{ model: 'claude-sonnet-4-5', provider: 'anthropic', input: '3', output: '15' },
    ...{ cacheRead: '0.3', cacheWrite: '3.75', cacheWrite1h: '6' },
  },
  {
    ...{ model: 'gemini-2.5-pro', provider: 'gemini', input: '1.25', cacheRead: '0.125', output: '10' },
    tiers: [{ aboveInputTokens: 200_000, input: '2.5', cacheRead: '0.25', output: '15' }],
  },
  { model: 'deepseek-chat', provider: 'deepseek', input: '0.27', cacheRead: '0.07', output: '1.1' },
  { model: 'llama-3.3-70b-versatile', provider: 'groq', input: '0.59', output: '0.79' },
  { model: 'mistral-small-latest', provider: 'mistral', input: '0.1', output: '0.3' },
  { model: 'grok-4', provider: 'xai', input: '3', cacheRead: '0.75', output: '15' },
  { model: 'openai/gpt-5', provider: 'openrouter', input: '1.25', output: '10' },
];
const LIST = { source: 'test', date: '2026-11-29', sha256: '', prices: PRICES };
const costs = new Costs({ shipped: LIST, file: null }, 'https://api.openai.com');

const HOSTS = {
  openai: ['https://api.openai.com', 'bearer'],
  anthropic: ['https://api.anthropic.com', 'x-api-key'],
  gemini: ['https://generativelanguage.googleapis.com', 'x-goog-api-key'],
  deepseek: ['https://api.deepseek.com', 'bearer'],
  groq: ['https://api.groq.com/openai', 'bearer'],
  mistral: ['https://api.mistral.ai', 'bearer'],
  xai: ['https://api.x.ai', 'bearer'],
  openrouter: ['https://openrouter.ai/api', 'bearer'],
} as const;

interface Case {
  of: keyof typeof HOSTS;
  path?: string;
  /** The response, or the data of its events. */
  json?: object;
  events?: readonly object[];
  nano: number | null;
}

const usage = (model: string, counts: object) => ({ id: 'c1', model, usage: counts });

const CASES: Record<string, Case> = {
  'OpenAI, chat with cached input and reasoning': {
    of: 'openai',
    json: usage('gpt-5-2025-08-07', {
      ...{ prompt_tokens: 2_006, completion_tokens: 300, total_tokens: 2_306 },
      prompt_tokens_details: { cached_tokens: 1_920, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 192, audio_tokens: 0 },
    }),
    nano: 86 * 1_250 + 1_920 * 125 + 300 * 10_000, // 3,347,500
  },
  'OpenAI, Responses as a stream': {
    of: 'openai',
    path: '/v1/responses',
    events: [
      { type: 'response.created', response: { model: 'gpt-5', usage: null } },
      {
        type: 'response.completed',
        response: usage('gpt-5', {
          ...{ input_tokens: 328, output_tokens: 52, total_tokens: 380 },
          ...{ input_tokens_details: { cached_tokens: 256 }, output_tokens_details: { reasoning_tokens: 12 } },
        }),
      },
    ],
    nano: 72 * 1_250 + 256 * 125 + 52 * 10_000, // 642,000
  },
  'OpenAI, embeddings': {
    of: 'openai',
    path: '/v1/embeddings',
    json: usage('text-embedding-3-small', { prompt_tokens: 8, total_tokens: 8 }),
    nano: 8 * 20,
  },
  'OpenAI, chat with audio': {
    of: 'openai',
    json: usage('gpt-audio', {
      ...{ prompt_tokens: 120, completion_tokens: 220, total_tokens: 340 },
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 100, text_tokens: 20 },
      completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 180, text_tokens: 40 },
    }),
    nano: 20 * 2_500 + 100 * 32_000 + 40 * 10_000 + 180 * 64_000, // 15,170,000
  },
  'OpenAI, a chat that does not say what it used': { of: 'openai', json: { id: 'c1', model: 'gpt-5' }, nano: null },
  'OpenAI, a chat that only says what was asked': {
    of: 'openai',
    json: usage('gpt-5', { prompt_tokens: 10 }),
    nano: null,
  },
  'OpenAI, a model that has no price': {
    of: 'openai',
    json: usage('gpt-unheard-of', { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 }),
    nano: null,
  },
  'OpenAI, a cost that nobody asked it for': {
    of: 'openai',
    json: usage('gpt-5', { prompt_tokens: 1, completion_tokens: 0, total_tokens: 1, cost: 0 }),
    nano: 1_250,
  },
  'Anthropic, cache writes for 5 minutes and for 1 hour': {
    of: 'anthropic',
    path: '/v1/messages',
    json: usage('claude-sonnet-4-5-20250929', {
      ...{ input_tokens: 21, cache_creation_input_tokens: 1_500, cache_read_input_tokens: 10_000, output_tokens: 393 },
      cache_creation: { ephemeral_5m_input_tokens: 500, ephemeral_1h_input_tokens: 1_000 },
    }),
    nano: 21 * 3_000 + 500 * 3_750 + 1_000 * 6_000 + 10_000 * 300 + 393 * 15_000, // 16,833,000
  },
  'Anthropic, a stream': {
    of: 'anthropic',
    path: '/v1/messages',
    events: [
      {
        type: 'message_start',
        message: usage('claude-sonnet-4-5-20250929', {
          ...{ input_tokens: 7, cache_creation_input_tokens: 100, cache_read_input_tokens: 0, output_tokens: 1 },
          cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 100 },
        }),
      },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 40 } },
    ],
    nano: 7 * 3_000 + 100 * 6_000 + 40 * 15_000, // 1,221,000
  },
  'Gemini, with thoughts and tools': {
    of: 'gemini',
    path: '/v1beta/models/gemini-2.5-pro:generateContent',
    json: {
      modelVersion: 'gemini-2.5-pro',
      usageMetadata: {
        ...{ promptTokenCount: 1_000, toolUsePromptTokenCount: 50, cachedContentTokenCount: 400 },
        ...{ candidatesTokenCount: 20, thoughtsTokenCount: 300, totalTokenCount: 1_370 },
      },
    },
    nano: 650 * 1_250 + 400 * 125 + 320 * 10_000, // 4,062,500
  },
  'Gemini, a long context': {
    of: 'gemini',
    path: '/v1beta/models/gemini-2.5-pro:generateContent',
    json: {
      modelVersion: 'gemini-2.5-pro',
      usageMetadata: { promptTokenCount: 200_001, candidatesTokenCount: 10, totalTokenCount: 200_011 },
    },
    nano: 200_001 * 2_500 + 10 * 15_000, // 500,152,500
  },
  DeepSeek: {
    of: 'deepseek',
    json: usage('deepseek-chat', {
      ...{ prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 },
      ...{ prompt_cache_hit_tokens: 640, prompt_cache_miss_tokens: 360 },
    }),
    nano: 360 * 270 + 640 * 70 + 100 * 1_100, // 252,000
  },
  'Groq, a stream': {
    of: 'groq',
    events: [
      { model: 'llama-3.3-70b-versatile', choices: [] },
      {
        model: 'llama-3.3-70b-versatile',
        x_groq: { usage: { prompt_tokens: 36, completion_tokens: 60, total_tokens: 96, queue_time: 0.05 } },
      },
    ],
    nano: 36 * 590 + 60 * 790, // 68,640
  },
  Mistral: {
    of: 'mistral',
    json: usage('mistral-small-latest', { prompt_tokens: 17, completion_tokens: 61, total_tokens: 78 }),
    nano: 17 * 100 + 61 * 300, // 20,000
  },
  'xAI, whose completion excludes the reasoning': {
    of: 'xai',
    json: usage('grok-4', {
      ...{ prompt_tokens: 32, completion_tokens: 9, total_tokens: 135 },
      prompt_tokens_details: { cached_tokens: 6, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 94, audio_tokens: 0 },
    }),
    nano: 26 * 3_000 + 6 * 750 + 103 * 15_000, // 1,627,500
  },
  'OpenRouter, its own cost': {
    of: 'openrouter',
    json: usage('openai/gpt-5', { prompt_tokens: 194, completion_tokens: 2, total_tokens: 196, cost: 0.00014 }),
    nano: 140_000,
  },
  'OpenRouter, a very small cost of a model that has no price': {
    of: 'openrouter',
    json: usage('some/model', { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cost: 1.4e-8 }),
    nano: 14,
  },
  'OpenRouter, a cost that is no whole number of nano-dollars': {
    of: 'openrouter',
    json: usage('openai/gpt-5', { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cost: 0.1 + 0.2 }),
    nano: 300_000_001,
  },
  'OpenRouter, with a key of the customer for the provider': {
    of: 'openrouter',
    json: usage('openai/gpt-5', {
      ...{ prompt_tokens: 10, completion_tokens: 2, total_tokens: 12, is_byok: true, cost: 0.0000015 },
      cost_details: { upstream_inference_cost: 0.00003 },
    }),
    nano: 31_500,
  },
  'OpenRouter, a cost that is not credible': {
    of: 'openrouter',
    json: usage('openai/gpt-5', { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3, cost: -1 }),
    nano: 2 * 1_250 + 10_000,
  },
};

describe('the cost of a response of each provider', () => {
  for (const [what, { of, path = '/v1/chat/completions', json, events, nano }] of Object.entries(CASES)) {
    it(`is worked out from its bytes: ${what}`, () => {
      const [upstreamBaseUrl, upstreamAuth] = HOSTS[of];
      const readers = new ContentReaders({ openDecoder, clock: { monotonic: () => 0 }, maxCaptured: null });
      const reader = readers.begin('p');
      reader.responseStarted(events ? 'text/event-stream' : 'application/json', null);
      const texts = events?.map((data) => `data: ${JSON.stringify(data)}\n\n`) ?? [JSON.stringify(json)];
      for (const text of texts) reader.piece(Buffer.from(text));
      const {
        model,
        usage: used,
        ranModel,
      } = reader.facts({
        ...{ isServed: true, method: 'POST', target: path, requestType: () => 'application/json', upstreamKey: null },
      });
      expect(ranModel).to.equal(true);
      expect(costs.costOf({ upstreamBaseUrl, upstreamAuth, pricedProvider: of }, model, used, 0)).to.equal(nano);
    });
  }
});
