/** The bound of a request: the most that it can cost, in tokens, or why there is none. */
import { expect } from 'chai';
import { boundOf, type BoundedRequest, type ModelLimits } from '../../daemon/core/budget/bound.js';
import { memberCountOf } from '../../daemon/core/budget/json-shape.js';
import { growthOf } from '../../daemon/core/budget/text-growth.js';

const CHAT = '/v1/chat/completions';
const LIMITS: ModelLimits = { maxOutput: 10_000, partTokens: 1_500 };
/** What the provider may add to a request, and to one with tools. */
const [INSTRUCTIONS, TOOLS] = [512, 1_024];

type Given = Partial<Omit<BoundedRequest, 'body'>> & { limits?: ModelLimits | null };

function ask(body: unknown, { limits = LIMITS, ...given }: Given = {}) {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const head = { method: 'POST', target: CHAT, host: 'api.openai.com', contentType: 'application/json' };
  return boundOf({ ...head, ...given, body: bytes }, () => limits);
}

const whyOf = (...asked: Parameters<typeof ask>): string => {
  const bound = ask(...asked);
  return 'why' in bound ? bound.why : `${String(bound.inputTokens)} + ${String(bound.outputTokens)} tokens`;
};
const outputOf = (...asked: Parameters<typeof ask>): number | string => {
  const bound = ask(...asked);
  return 'why' in bound ? bound.why : bound.outputTokens;
};

const hi = [{ role: 'user', content: 'Hi' }];
const chat = { model: 'gpt-5', messages: hi, max_completion_tokens: 100 };
const responses = { model: 'gpt-5', input: 'Hi', max_output_tokens: 100 };
const messages = { model: 'claude-sonnet-4-5', messages: hi, max_tokens: 100 };
const gemini = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], generationConfig: { maxOutputTokens: 100 } };
const schema = { type: 'object', properties: { city: { type: 'string' } } };
const at = (target: string, host = 'api.openai.com'): Given => ({ target, host });
const RESPONSES = at('/v1/responses');
const MESSAGES = at('/v1/messages', 'api.anthropic.com');
const GEMINI = at('/v1beta/models/gemini-2.5-pro:generateContent', 'generativelanguage.googleapis.com');

describe('the bound of a request', () => {
  describe('its tokens', () => {
    const cases: [what: string, body: unknown, given: Given, model: string, more: number, output: number][] = [
      ['chat', chat, {}, 'gpt-5', INSTRUCTIONS, 100],
      ['chat without a maximum', { ...chat, max_completion_tokens: null }, {}, 'gpt-5', INSTRUCTIONS, 10_000],
      ['chat with both maxima', { ...chat, max_tokens: 300 }, {}, 'gpt-5', INSTRUCTIONS, 300],
      ['chat with choices', { ...chat, n: 3 }, {}, 'gpt-5', INSTRUCTIONS, 300],
      [
        'chat with an image and audio',
        {
          ...chat,
          messages: [
            {
              role: 'user',
              content: [
                { type: 'text', text: 'What is it?' },
                { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'high' } },
                { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
              ],
            },
          ],
        },
        {},
        'gpt-5',
        INSTRUCTIONS + 3_000,
        100,
      ],
      [
        'chat on Azure, where the path names the model',
        { messages: hi, max_tokens: 7 },
        at('/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21', 'me.openai.azure.com'),
        'my-gpt',
        INSTRUCTIONS,
        7,
      ],
      ['responses', responses, RESPONSES, 'gpt-5', INSTRUCTIONS, 100],
      [
        'responses with results of tools',
        {
          ...responses,
          input: [
            { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' },
            { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
            { type: 'function_call_output', call_id: 'c', output: 'ok' },
            { role: 'user', content: [{ type: 'input_text', text: 'Go on' }] },
          ],
        },
        RESPONSES,
        'gpt-5',
        INSTRUCTIONS + 16 * 2, // The braces of the arguments.
        100,
      ],
      ['messages', messages, MESSAGES, 'claude-sonnet-4-5', INSTRUCTIONS, 100],
      [
        'messages with more thinking than output',
        { ...messages, thinking: { type: 'enabled', budget_tokens: 2_000 } },
        MESSAGES,
        'claude-sonnet-4-5',
        INSTRUCTIONS,
        2_100,
      ],
      ['Gemini', gemini, GEMINI, 'gemini-2.5-pro', INSTRUCTIONS, 100],
      [
        'Gemini in the other spelling',
        { contents: gemini.contents, generation_config: { max_output_tokens: 5, candidate_count: 2 } },
        GEMINI,
        'gemini-2.5-pro',
        INSTRUCTIONS,
        10,
      ],
      [
        'prompts',
        { model: 'babbage-002', prompt: ['a', 'b'], max_tokens: 5, n: 2, best_of: 3 },
        at('/v1/completions'),
        'babbage-002',
        INSTRUCTIONS,
        60,
      ],
      [
        'a prompt of tokens',
        { model: 'babbage-002', prompt: [1, 2, 3], max_tokens: 5 },
        at('/v1/completions'),
        'babbage-002',
        INSTRUCTIONS,
        5,
      ],
      ['embeddings', { model: 'e', input: ['a', 'b'] }, at('/v1/embeddings'), 'e', 0, 0],
      ['embeddings of tokens', { model: 'e', input: [[1, 2], [3]] }, at('/v1/embeddings'), 'e', 0, 0],
      ['moderations', { model: 'omni', input: 'a' }, at('/v1/moderations'), 'omni', 0, 0],
      [
        'embeddings of Gemini',
        { requests: [{ model: 'models/e', content: { parts: [{ text: 'a' }] } }] },
        at('/v1beta/models/e:batchEmbedContents'),
        'e',
        0,
        0,
      ],
    ];
    for (const [what, body, given, model, more, outputTokens] of cases) {
      it(what, () => {
        const inputTokens = JSON.stringify(body).length + more;
        expect(ask(body, given)).to.deep.include({ model, inputTokens, outputTokens });
      });
    }

    it('count what a template may add to the data of tools', () => {
      const tool = { type: 'function', function: { name: 'f', description: "It's <b>", parameters: schema } };
      const body = { ...chat, tools: [tool] };
      // Four members, one, two and three levels deep, and the three characters that HTML escapes.
      const members = 16 + 16 + 17 + 18;
      expect(ask(body)).to.have.property(
        'inputTokens',
        JSON.stringify(body).length + INSTRUCTIONS + TOOLS + members + 3 * 5,
      );
    });

    it('are the same for a model without a price, as far as it is not needed', () => {
      expect(ask(chat, { limits: null })).to.have.property('outputTokens', 100);
      expect(whyOf({ ...chat, max_completion_tokens: null }, { limits: null })).to.include('max_output');
    });

    it('count the longest normal form of a text, however it is escaped', () => {
      const plain = { ...chat, messages: [{ role: 'user', content: 'ﷺ' }] };
      const bytes = JSON.stringify(plain);
      const [asUtf8, escaped] = [bytes, bytes.replace('ﷺ', '\\ufdfa')].map((body) => ask(body));
      const grown = 'ﷺ'.normalize('NFKC');
      const growth = Buffer.byteLength(grown) - 3;
      expect(growth).to.equal(30);
      expect(asUtf8).to.have.property('inputTokens', Buffer.byteLength(bytes) + growth + INSTRUCTIONS);
      expect(escaped).to.have.property('inputTokens', Buffer.byteLength(bytes) + 3 + growth + INSTRUCTIONS);
    });
  });

  describe('its maximum of output', () => {
    const { max_completion_tokens: most, ...unlimited } = chat;

    it('is only what this API honours', () => {
      expect(outputOf({ ...responses, max_tokens: 5 }, RESPONSES)).to.include('max_tokens');
      expect(outputOf(chat, { host: 'api.deepseek.com' })).to.equal(10_000);
      expect(outputOf({ ...chat, max_tokens: most }, { host: 'api.deepseek.com' })).to.equal(100);
      expect(outputOf({ ...unlimited, max_completion_tokens: 20_000 }, { host: 'localhost' })).to.equal(20_000);
      expect(outputOf({ ...unlimited, model: 'grok-4', max_tokens: 5 }, { host: 'api.x.ai' })).to.equal(10_005);
      expect(outputOf({ ...unlimited, max_tokens: 5 }, { host: 'dashscope.aliyuncs.com' })).to.equal(10_005);
    });

    for (const value of [0, -1, 1.5, '100', true, 1e300, [100]]) {
      it(`is not ${JSON.stringify(value)}`, () => {
        expect(outputOf({ ...unlimited, max_tokens: value })).to.equal('max_tokens is not a whole number above 0');
        expect(outputOf({ ...chat, n: value })).to.equal('n is not a whole number above 0');
      });
    }

    it('is not more than can be counted', () => {
      expect(outputOf({ ...chat, n: Number.MAX_SAFE_INTEGER })).to.include('too large');
    });
  });

  describe('does not exist', () => {
    const part = (value: object) => ({ ...chat, messages: [{ role: 'user', content: [value] }] });
    const item = (value: object) => ({ ...responses, input: [value] });
    const block = (value: object) => ({ ...messages, messages: [{ role: 'user', content: [value] }] });
    const piece = (value: object) => ({ ...gemini, contents: [{ parts: [value] }] });
    const OF_CHAT: object[] = [
      { ...chat, web_search_options: {} },
      { ...chat, plugins: [{ id: 'web' }] },
      { ...chat, models: ['a', 'b'] },
      { ...chat, route: 'fallback' },
      { ...chat, provider: { order: ['x'] } },
      { ...chat, prediction: { type: 'content', content: 'a' } },
      { ...chat, modalities: ['text', 'audio'] },
      { ...chat, service_tier: 'priority' },
      { ...chat, tools: [{ type: 'web_search' }] },
      { ...chat, tools: [{ type: 'builtin_function', function: { name: '$web_search' } }] },
      { ...chat, reasoning: { max_tokens: 5 } },
      { ...chat, thinking: { type: 'enabled', budget_tokens: 5 } },
      { ...chat, chat_template: '{{ "a" * 1000 }}' },
      { ...chat, Max_Tokens: 5 },
      { ...chat, messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] },
      { ...chat, messages: [{ role: 'user', content: 'Hi', Content: 'Ho' }] },
      { ...chat, messages: 'Hi' },
      { ...chat, messages: [['Hi']] },
      part({ type: 'file', file: { file_id: 'file-1' } }),
      part({ type: 'video_url', video_url: { url: 'https://example.com/a' } }),
      part({ type: 'image_url', image_url: { url: 'data:video/mp4;base64,AAAA' } }),
      part({ type: 'image_url', image_url: ' DATA:application/pdf;base64,AAAA' }),
      part({ text: 'Hi' }),
      { ...chat, model: null },
      { ...chat, model: ['gpt-5'] },
      { ...chat, model: 'perplexity/sonar' },
      { ...chat, model: 'openai/gpt-5:online' },
      { ...chat, model: 'openai/gpt-5:nitro' },
      { ...chat, model: '@preset/mine' },
      { ...chat, model: 'gpt-4o-search-preview' },
      { ...chat, model: 'openrouter/auto' },
    ];
    const OF_RESPONSES: object[] = [
      { ...responses, previous_response_id: 'resp_1' },
      { ...responses, conversation: 'conv_1' },
      { ...responses, prompt: { id: 'pmpt_1' } },
      { ...responses, background: true },
      { ...responses, context_management: [{ type: 'compaction' }] },
      { ...responses, tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
      { ...responses, tools: [{ type: 'mcp', server_url: 'https://example.com' }] },
      item({ type: 'item_reference', id: 'msg_1' }),
      item({ id: 'msg_1' }),
      item({ type: 'reasoning', id: 'rs_1', summary: [] }),
      item({ type: 'web_search_call', id: 'ws_1' }),
      item({ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] }),
      item({ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }),
      item({ role: 'user', content: [{ type: 'input_image', image_url: 'data:video/mp4;base64,AAAA' }] }),
    ];
    const OF_MESSAGES: object[] = [
      { ...messages, container: 'c' },
      { ...messages, mcp_servers: [{ url: 'https://example.com' }] },
      { ...messages, context_management: { edits: [] } },
      { ...messages, speed: 'fast' },
      { ...messages, thinking: { type: 'enabled', budget_tokens: '5000' } },
      { ...messages, inference_geo: 'us' },
      { ...messages, tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      { ...messages, tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] },
      block({ type: 'image', source: { type: 'file', file_id: 'file_1' } }),
      block({ type: 'container_upload', file_id: 'file_1' }),
      block({ type: 'document', source: { type: 'text', data: 'a' }, citations: { enabled: true } }),
    ];
    const OF_GEMINI: object[] = [
      { ...gemini, cachedContent: 'cachedContents/1' },
      { ...gemini, tools: [{ googleSearch: {} }] },
      { ...gemini, tools: [{ code_execution: {} }] },
      { ...gemini, generation_config: { maxOutputTokens: 1 } },
      { ...gemini, generationConfig: { maxOutputTokens: 1, max_output_tokens: 2 } },
      { ...gemini, generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } },
      { ...gemini, model: 'models/gemini-2.5-flash' },
      piece({ fileData: { fileUri: 'https://example.com/a' } }),
      piece({ inlineData: { mimeType: 'video/mp4', data: 'AAAA' } }),
    ];
    const all: [Given, object[]][] = [
      [{}, OF_CHAT],
      [RESPONSES, OF_RESPONSES],
      [MESSAGES, OF_MESSAGES],
      [GEMINI, OF_GEMINI],
    ];
    for (const [given, bodies] of all) {
      it(`at ${given.target ?? CHAT} with what may cost more, or is not known`, () => {
        const bounded = bodies.filter((body) => !('why' in ask(body, given)));
        expect(bounded).to.deep.equal([]);
      });
    }

    it('and the reason names a member, but nothing else that the client wrote', () => {
      expect(whyOf({ ...chat, best_guess: 1 })).to.equal('the member best_guess is not known');
      expect(whyOf({ ...chat, 'a b': 1 })).to.equal('the member with an unusual name is not known');
      expect(whyOf({ ...chat, tools: [{ type: 'x'.repeat(99) }] })).to.equal(
        'a tool of type with an unusual name is not known',
      );
    });

    const text = JSON.stringify(chat);
    const written: [what: string, body: string | Buffer][] = [
      ['a repeated maximum', text.replace('{', '{"max_completion_tokens":1000000,')],
      ['a maximum repeated with escapes', text.replace('{', '{"max_completion\\u005ftokens":1000000,')],
      ['escapes in a name of data', text.replace('{', '{"metadata":{"\\u0061":1},')],
      ['a repeated member further inside', text.replace('"role"', '"role":"user","role"')],
      ['a byte order mark', `\uFEFF${text}`],
      ['something behind it', `${text}{}`],
      ['a comment', text.replace('{', '{/**/')],
      ['a trailing comma', text.replace(/\}$/, ',}')],
      ['no object', '[]'],
      ['what is not UTF-8', Buffer.concat([Buffer.from(text.slice(0, -2)), Buffer.from([0xff]), Buffer.from('"}')])],
      ['UTF-16', Buffer.from(text, 'utf16le')],
      ['too deep a nesting', text.replace('{', `{"metadata":${'['.repeat(120)}${']'.repeat(120)},`)],
      ['too many members', text.replace('{', `{"metadata":{${'"a":1,'.repeat(60_000)}"b":1},`)],
    ];
    for (const [what, body] of written) {
      it(`for a body with ${what}`, () => {
        expect(ask(body)).to.have.property('why');
      });
    }

    it('for another type of body, or none', () => {
      for (const contentType of [null, 'text/plain', 'application/json; charset=utf-16', 'multipart/form-data'])
        expect(whyOf(chat, { contentType })).to.equal('its body is not JSON in UTF-8');
      expect(
        boundOf({ method: 'POST', target: CHAT, host: 'a', contentType: 'application/json', body: null }, () => null),
      ).to.have.property('why');
      expect(ask(chat, { contentType: 'application/json; charset=UTF-8' })).to.have.property('outputTokens', 100);
    });

    it('for other routes, and paths or queries that may be read in two ways', () => {
      const routes = [
        '/v1/Chat/Completions',
        '/v1/chat%2Fcompletions',
        '/v1/chat/%63ompletions',
        '/v1/chat/completions/',
        '/v1/chat/completions;a',
        '/v1/chat/completions?model=gpt-5-pro',
        '/v1/chat/completions?api-version=1?',
        '/openai/deployments/other/chat/completions',
        '/openai/deployments/a/deployments/b/chat/completions',
        '/models/a/v1/chat/completions',
        '/v1/fim/completions',
        '/v1/agents/completions',
        '/v1/batches',
        '/v1/images/generations',
        '/v1/audio/speech',
        '/v1/realtime/calls',
        '/v1/threads/t/messages',
        '/v1/responses/compact',
        '/v1/messages/batches',
        '/v1beta/models/gemini-2.5-pro:batchGenerateContent',
      ];
      expect(routes.filter((target) => !('why' in ask(chat, { target })))).to.deep.equal([]);
      expect(whyOf(chat, { method: 'PUT' })).to.include('route');
    });

    it('for a file that the provider has another model read', () => {
      const body = part({ type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' } });
      expect(ask(body)).to.have.property('outputTokens', 100);
      expect(whyOf(body, { host: 'openrouter.ai' })).to.include('files');
    });

    it('for an image whose tokens are not in the price list', () => {
      const body = part({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } });
      expect(whyOf(body, { limits: { maxOutput: 1, partTokens: null } })).to.include('part_tokens');
    });
  });

  it('takes the messages that SDKs dump, whose absent members are null', () => {
    const dumped = { role: 'assistant', content: 'Hi', refusal: null, audio: null, tool_calls: null, annotations: [] };
    expect(ask({ ...chat, messages: [dumped] })).to.have.property('outputTokens', 100);
    expect(ask({ ...responses, background: false, previous_response_id: null }, RESPONSES)).to.have.property('model');
  });
});

describe('the members of a JSON document', () => {
  const random = randomFrom(20_261_129);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const NAMES = ['a', 'b', 'a:b', '{', '', ',', 'ü', 'z'.repeat(60)];
  const STRINGS = [
    ...NAMES,
    ...['\\"', '\\\\', '\\u0061', '{\\"c\\":1}'],
    'x'.repeat(70),
    `${'x'.repeat(60)}\\\\\\":`,
    `${'y'.repeat(50)}\\\\`,
    '\\\\'.repeat(40),
  ];

  /** Text of a document, the number of its members, and how many of them have a name of their own. */
  function document(depth: number): [json: string, members: number, distinct: number] {
    const kind = depth === 0 ? 'text' : pick(['object', 'object', 'list', 'text', 'number']);
    if (kind === 'text') return [`"${pick(STRINGS)}"`, 0, 0];
    if (kind === 'number') return [pick(['0', '-1.5e3', 'true', 'null']), 0, 0];
    const entries = Array.from({ length: Math.floor(random() * 4) }, () => document(depth - 1));
    const space = pick(['', ' ', '\n\t']);
    if (kind === 'list')
      return [`[${entries.map(([json]) => json + space).join(',')}]`, sum(entries, 1), sum(entries, 2)];
    const names = entries.map(() => pick(NAMES));
    const json = `{${entries.map(([value], i) => `"${names[i] ?? ''}"${space}:${space}${value}`).join(',')}}`;
    // Of those with the same name the last one stays, with what is in it.
    const kept = entries.filter((_, i) => names.lastIndexOf(names[i] ?? '') === i);
    return [json, names.length + sum(entries, 1), kept.length + sum(kept, 2)];
  }

  const sum = (entries: readonly (readonly [string, number, number])[], which: 1 | 2) =>
    entries.reduce((total, entry) => total + entry[which], 0);

  it('are counted before it is parsed, also those whose name is repeated', () => {
    let repeated = 0;
    for (let i = 0; i < 3_000; i++) {
      const [json, members, distinct] = document(5);
      expect(memberCountOf(Buffer.from(json)), json).to.equal(members);
      if (!json.startsWith('{')) continue;
      const body = `{"model":"m","messages":[],"max_tokens":1,"metadata":${json}}`;
      const why = members === distinct ? '512 + 1 tokens' : 'a member is repeated';
      expect(whyOf(body).replace(/^\d+/, '512'), body).to.equal(why);
      if (members !== distinct) repeated += 1;
    }
    expect(repeated).to.be.within(100, 2_000);
  });
});

describe('the growth of a text in normal forms', () => {
  it('is at least what normalizing it adds', () => {
    const random = randomFrom(7);
    // Composed and decomposed letters, marks of several classes, ligatures, Hangul, musical signs, half of a pair.
    const pieces = Array.from(
      'aeé ẹ́ﬀﷺ가ᄀ\u1161\u11a8ｶﾞΐΰ½…，𝅗𝅥\u0301\u0323\u0344\u0f73\u09be\u0bbe\u{1d165}\u{1d15e}\u{2f800}\ud800',
    );
    for (let i = 0; i < 20_000; i++) {
      const text = Array.from({ length: 1 + random() * 6 }, () => pieces[Math.floor(random() * pieces.length)]).join(
        '',
      );
      const longest = Math.max(...['NFC', 'NFKC'].map((form) => Buffer.byteLength(text.normalize(form))));
      expect(growthOf({ a: [text] }), JSON.stringify(text)).to.be.at.least(longest - Buffer.byteLength(text));
    }
    expect(growthOf('Größe, 你好, é…')).to.equal(0);
  });
});

/** A generator of numbers from 0 up to 1 that yields the same ones for a seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
