/** What is asked of a target, over and over. */
export interface Asked {
  method: 'GET' | 'POST';
  path: string;
  /** JSON; null: none. */
  body: string | null;
  /** A part of the answer by which the right one is known. */
  answeredWith: string;
}

export const CHAT: Asked = {
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
  answeredWith: '"chat.completion"',
};

/** What the daemon keeps, unless it is told otherwise. */
export const MODELS: Asked = { method: 'GET', path: '/v1/models', body: null, answeredWith: '"object":"model"' };

/** What a cache is asked for in vain: the answer states no lifetime, and its path gets none. */
export const NEVER_KEPT: Asked = { method: 'GET', path: '/v1/files', body: null, answeredWith: '"object"' };
