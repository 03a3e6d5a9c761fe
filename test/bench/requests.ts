/** A request that is sent to a target again and again. */
export interface BenchRequest {
  method: 'GET' | 'POST';
  path: string;
  /** JSON; null: none. */
  body: string | null;
  /** A part of the expected response. */
  expectedPart: string;
}

export const CHAT: BenchRequest = {
  method: 'POST',
  path: '/v1/chat/completions',
  body: JSON.stringify({
    model: 'gpt-4o-mini',
    messages: [
      { role: 'system', content: 'You are a helpful assistant.' },
      { role: 'user', content: 'Say hello in one sentence.' },
    ],
    temperature: 0.2,
  }),
  expectedPart: '"chat.completion"',
};

/** A chat with a prompt of 64 KB. */
export const LONG_CHAT: BenchRequest = {
  ...CHAT,
  body: JSON.stringify({
    model: 'gpt-4o-mini',
    messages: [{ role: 'user', content: 'A long document, line after line. '.repeat(1_928) }],
  }),
};

/** A response that the daemon caches by default. */
export const MODELS: BenchRequest = { method: 'GET', path: '/v1/models', body: null, expectedPart: '"object":"model"' };

/** A request that always misses the cache: its response states no lifetime, and its path has no default. */
export const UNCACHED: BenchRequest = { method: 'GET', path: '/v1/files', body: null, expectedPart: '"object"' };
