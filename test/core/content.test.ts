import { gzipSync, brotliCompressSync, deflateRawSync, deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { ContentReaders } from '../../daemon/core/content/content-reader.js';
import type { ContentFacts, ModelUsage } from '../../daemon/core/events.js';
import { modelUsageOf } from '../../daemon/core/content/token-counts.js';
import { openDecoder } from '../../daemon/http/proxy/decoding.js';
import { seededRandom } from '../support/model.js';

const readers = (capture = false, most = 65_536) =>
  new ContentReaders({ openDecoder, clock: { monotonic: () => 0 }, maxCaptured: capture ? most : null });

interface Exchange {
  type?: string;
  coding?: string;
  asked?: string | Buffer;
  pieces: readonly Buffer[];
  capture?: { most: number };
  upstreamKey?: string;
  requestType?: string;
}

function factsOf(exchange: Exchange): ContentFacts {
  const all = readers(exchange.capture !== undefined, exchange.capture?.most);
  const reader = all.begin('p');
  if (exchange.asked !== undefined) reader.requestBody(Buffer.from(exchange.asked));
  reader.responseStarted(exchange.type ?? 'application/json', exchange.coding ?? null);
  for (const piece of exchange.pieces) reader.piece(piece);
  const { model, usage, requestBody, responseBody } = reader.facts({
    isServed: true,
    method: 'POST',
    target: '/v1/x',
    requestType: () => exchange.requestType ?? 'application/json',
    upstreamKey: exchange.upstreamKey ?? null,
  });
  expect(all.budget.heldBytes, 'bytes still held').to.equal(0);
  return { model, usage: modelUsageOf(usage), requestBody, responseBody };
}

const ofJson = (value: unknown, more: Partial<Exchange> = {}) =>
  factsOf({ pieces: [Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))], ...more });
const counts = (
  promptTokens: number | null,
  completionTokens: number | null,
  totalTokens: number | null,
  cacheReadTokens: number | null = null,
  cacheWriteTokens: number | null = null,
): ModelUsage => ({
  promptTokens,
  completionTokens,
  totalTokens,
  cacheReadTokens,
  cacheWriteTokens,
});

const CHAT = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'gpt-test-1',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'the "usage" and {"model":"liar"}' }, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 9, completion_tokens: 12, total_tokens: 21, prompt_tokens_details: { cached_tokens: 0 } },
  service_tier: 'default',
};

describe('the model and usage of a JSON response', () => {
  const RESPONSES: [what: string, body: unknown, model: string | null, usage: ModelUsage | null][] = [
    ['a chat completion', CHAT, 'gpt-test-1', counts(9, 12, 21, 0)],
    ['a chat completion without usage', { ...CHAT, usage: undefined }, 'gpt-test-1', null],
    ['a chat completion whose usage is null', { ...CHAT, usage: null }, 'gpt-test-1', null],
    ['a transcription billed by the second', { text: 'hello', usage: { type: 'duration', seconds: 3 } }, null, null],
    ['a moderation', { id: 'modr-1', model: 'omni-moderation', results: [] }, 'omni-moderation', null],
    ['a list of models', { object: 'list', data: [{ id: 'a', object: 'model' }] }, null, null],
    ['a single count', { model: 'm', usage: { completion_tokens: 4 } }, 'm', counts(null, 4, null)],
    ['a nested usage, which is ignored', { model: 'm', x: { usage: { prompt_tokens: 1 } } }, 'm', null],
    [
      'a nested model, which is ignored',
      { x: { model: 'm' }, usage: { prompt_tokens: 1 } },
      null,
      counts(1, null, null),
    ],
    [
      'usage at the beginning, and a false one nested at the end',
      { usage: { prompt_tokens: 1 }, model: 'm', x: { usage: { prompt_tokens: 2 } } },
      'm',
      counts(1, null, null),
    ],
    ['members of __proto__, which are ignored', '{"__proto__":{"model":"m","usage":{"prompt_tokens":1}}}', null, null],
    [
      'the last of duplicates',
      '{"model":"m","usage":{"prompt_tokens":1},"usage":{"prompt_tokens":2}}',
      'm',
      counts(2, null, null),
    ],
    ['names that only look similar', '{"a\\"usage":{"prompt_tokens":1},"a\\"model":"m"}', null, null],
    ['a leading byte order mark', `\ufeff${JSON.stringify(CHAT)}`, 'gpt-test-1', counts(9, 12, 21, 0)],
    ['much white space', JSON.stringify(CHAT, null, 8).replaceAll('\n', '\r\n\t'), 'gpt-test-1', counts(9, 12, 21, 0)],
    ['JSON that breaks off after it', '{"model":"m","usage":{"prompt_tokens":1}', 'm', counts(1, null, null)],
    ['JSON that breaks off within it', '{"model":"m","usage":{"prompt_tokens":1', 'm', null],
    ['an empty body', '', null, null],
    ['an array', [CHAT], null, null],
  ];
  for (const [what, body, model, usage] of RESPONSES) {
    it(`are read: ${what}`, () => {
      expect(ofJson(body)).to.deep.equal({ model, usage, requestBody: null, responseBody: null });
    });
  }

  const IMPLAUSIBLE = [-1, 1.5, 1e10, 2 ** 60, '12', true, null, [], {}, 'NaN'];
  for (const value of IMPLAUSIBLE) {
    it(`are ignored if implausible: ${JSON.stringify(value)} tokens`, () => {
      const { usage } = ofJson({ model: 'm', usage: { prompt_tokens: value, completion_tokens: 7 } });
      expect(usage).to.deep.equal(counts(null, 7, null));
    });
  }

  it('are missing if all counts are invalid', () => {
    expect(ofJson({ usage: { prompt_tokens: -1, total_tokens: 'x' } }).usage).to.equal(null);
    for (const usage of [[1], 'x', 3, true]) expect(ofJson({ usage }).usage).to.equal(null);
  });

  it('are limited to 200 printable characters for the model', () => {
    expect(ofJson({ model: 'x'.repeat(300) }).model).to.equal('x'.repeat(200));
    expect(ofJson({ model: 'a\u0000b\u001b[31m\u202ec\ud800' }).model).to.equal('ab[31mc');
    expect(ofJson({ model: 'modèle-✓' }).model).to.equal('modèle-✓');
    expect(ofJson({ model: ' gpt-4o  ' }).model).to.equal(' gpt-4o');
    for (const model of ['', 7, null, {}, '\u0007', 'y'.repeat(100_000)])
      expect(ofJson({ model }).model).to.equal(null);
  });

  it('are read at both ends of a body of megabytes', () => {
    const numbers = `[${Array.from({ length: 400_000 }, () => '0.012345678').join(',')}]`;
    const body = Buffer.from(
      `{"object":"list","data":[{"embedding":${numbers}}],"model":"embed-1","usage":{"prompt_tokens":8,"total_tokens":8}}`,
    );
    for (const size of [body.length, 65_536, 16_000, 1_000]) {
      const facts = factsOf({ pieces: cutInto(body, size) });
      expect([facts.model, facts.usage], `pieces of ${size}`).to.deep.equal(['embed-1', counts(8, null, 8)]);
    }
  });

  it('are read quickly from a body nested a million levels deep', () => {
    const deep = `{"model":"m","x":${'['.repeat(1e6)}${']'.repeat(1e6)},"usage":{"prompt_tokens":1}}`;
    expect(ofJson(deep)).to.deep.include({ model: 'm', usage: counts(1, null, null) });
    const deepInside = `{"usage":{"prompt_tokens":1,"x":${'{"usage":'.repeat(3_000)}1${'}'.repeat(3_000)}}}`;
    expect(ofJson(deepInside).usage).to.deep.equal(counts(1, null, null));
  });

  it('are not read from other content types', () => {
    expect(ofJson(CHAT, { type: 'audio/mpeg' }).usage).to.equal(null);
    expect(ofJson(CHAT, { type: 'application/json; charset=utf-8' }).usage).to.deep.equal(counts(9, 12, 21, 0));
    expect(ofJson(CHAT, { type: 'application/vnd.x+json' }).model).to.equal('gpt-test-1');
  });
});

describe('the requested model', () => {
  it('is used if the response names none', () => {
    const audio = { type: 'audio/mpeg', pieces: [Buffer.from('ID3')] };
    expect(factsOf({ ...audio, asked: '{"model":"tts-1","input":"hi"}' }).model).to.equal('tts-1');
    expect(factsOf({ ...audio, asked: ' \n{"input":"hi","model":"tts-1"}' }).model).to.equal('tts-1');
    expect(factsOf({ ...audio, asked: 'model=tts-1' }).model).to.equal(null);
    expect(ofJson(CHAT, { asked: '{"model":"alias"}' }).model).to.equal('gpt-test-1');
  });

  it('is found in a form', async () => {
    const form = new FormData();
    form.append('file', new Blob(['RIFF\r\n\r\nname="model"\r\n\r\nliar\r\n']), 'a.wav');
    form.append('model', 'whisper-1');
    const body = Buffer.from(await new Response(form).arrayBuffer());
    expect(ofJson({ text: 'x' }, { asked: body }).model).to.equal('whisper-1');
  });

  it('is found in a streamed body', async () => {
    const reader = readers().begin('p');
    const body = Buffer.from(`{"model":"m","input":"${'x'.repeat(200_000)}"}`);
    const passed: Buffer[] = [];
    async function* source() {
      for (const piece of cutInto(body, 7_777)) yield await Promise.resolve(piece);
    }
    for await (const piece of reader.streamedRequestBody(source())) passed.push(piece);
    expect(Buffer.concat(passed).equals(body)).to.equal(true);
    expect(
      reader.facts({
        isServed: true,
        method: 'POST',
        target: '/v1/x',
        requestType: () => undefined,
        upstreamKey: null,
      }),
    ).to.deep.include({
      model: 'm',
    });
  });
});

function cutInto(body: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(body.length / size) }, (_, n) => body.subarray(n * size, (n + 1) * size));
}

const chunk = (delta: object, more: object = {}) =>
  JSON.stringify({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'gpt-s',
    choices: [{ index: 0, delta, finish_reason: null }],
    ...more,
  });

/** Streams as providers send them, with the expected result. */
const STREAMS: Record<string, { events: string[]; model: string | null; usage: ModelUsage | null; response: string }> =
  {
    'chat with usage at its end': {
      events: [
        chunk({ role: 'assistant', content: '' }, { usage: null }),
        chunk({ content: 'Grüß' }, { usage: null }),
        chunk({ content: ' "usage":{"prompt_tokens":99} 🙂' }, { usage: null }),
        JSON.stringify({
          id: 'c',
          object: 'chat.completion.chunk',
          model: 'gpt-s',
          choices: [],
          usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 },
        }),
        '[DONE]',
      ],
      model: 'gpt-s',
      usage: counts(3, 5, 8),
      response:
        '{"id":"c","object":"chat.completion","created":1,"model":"gpt-s","choices":[{"index":0,"message":{"role":"assistant","content":"Grüß \\"usage\\":{\\"prompt_tokens\\":99} 🙂"},"finish_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}',
    },
    'chat with a cumulative usage in each chunk': {
      events: [
        chunk({ content: 'a' }, { usage: { prompt_tokens: 3, completion_tokens: 1 } }),
        chunk({ content: 'b' }, { usage: { prompt_tokens: 3, completion_tokens: 2 } }),
        '[DONE]',
      ],
      model: 'gpt-s',
      usage: counts(3, 2, null),
      response:
        '{"id":"c","object":"chat.completion","created":1,"model":"gpt-s","choices":[{"index":0,"message":{"role":"assistant","content":"ab"},"finish_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":2}}',
    },
    'chat that calls a tool, and names its model late': {
      events: [
        JSON.stringify({ id: '', object: '', model: '', choices: [], prompt_filter_results: [] }),
        chunk({
          role: 'assistant',
          tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }],
        }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
      ],
      model: 'gpt-s',
      usage: null,
      response:
        '{"id":"","object":"","model":"","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\\"a\\":1}"}}]},"finish_reason":null}],"usage":null}',
    },
    'a response': {
      events: [
        '{"type":"response.created","response":{"id":"r","object":"response","model":"gpt-r","usage":null}}',
        '{"type":"response.output_text.delta","delta":"Hi"}',
        '{"type":"response.completed","sequence_number":3,"response":{"id":"r","model":"gpt-r","output":[{"text":"Hi"}],"usage":{"input_tokens":36,"output_tokens":87,"total_tokens":123},"user":null,"metadata":{}}}',
      ],
      model: 'gpt-r',
      usage: counts(36, 87, 123),
      response:
        '{"id":"r","model":"gpt-r","output":[{"text":"Hi"}],"usage":{"input_tokens":36,"output_tokens":87,"total_tokens":123},"user":null,"metadata":{}}',
    },
    'a transcript': {
      events: [
        '{"type":"transcript.text.delta","delta":"He"}',
        '{"type":"transcript.text.done","text":"Hey","usage":{"type":"tokens","input_tokens":14,"output_tokens":45,"total_tokens":59}}',
      ],
      model: null,
      usage: counts(14, 45, 59),
      response:
        '{"type":"transcript.text.done","text":"Hey","usage":{"type":"tokens","input_tokens":14,"output_tokens":45,"total_tokens":59}}',
    },
    speech: {
      events: [
        '{"type":"speech.audio.delta","audio":"AAAA"}',
        '{"type":"speech.audio.done","usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}',
      ],
      model: null,
      usage: counts(1, 2, 3),
      response: '',
    },
  };

const NAMED_EVENT = /"type":"([^"]*)"/;

/** The same events in the formatting of different servers. */
const WAYS: Record<string, (events: readonly string[]) => string> = {
  LF: (events) => events.map((data) => `data: ${data}\n\n`).join(''),
  CRLF: (events) => events.map((data) => `data:${data}\r\n\r\n`).join(''),
  CR: (events) => events.map((data) => `data: ${data}\r\r`).join(''),
  'names, ids, comments and a byte order mark': (events) =>
    `\ufeff: hello\n\n${events.map((data) => `: ping "usage"\nevent: ${NAMED_EVENT.exec(data)?.[1] ?? 'x'}\nid: 7\ndata: ${data}\nretry: 1\n\n`).join(':\n\n')}`,
  'several lines of data': (events) =>
    events.map((data) => `data: ${data.replaceAll(',"', ',\ndata: "')}\n\n`).join(''),
  'mixed line ends': (events) =>
    events.map((data, n) => `data: ${data}${['\n\r\n', '\r\n\n', '\r\n\r\n', '\r\r\n'][n % 4]!}`).join(''),
  'no empty line at its end': (events) => events.map((data) => `data: ${data}`).join('\n\n'),
};

describe('the model and usage of an event stream', () => {
  for (const [what, { events, model, usage, response }] of Object.entries(STREAMS)) {
    for (const [way, sent] of Object.entries(WAYS)) {
      const body = Buffer.from(sent(events));
      const factsOfPieces = (pieces: readonly Buffer[], most?: number) =>
        factsOf({ type: 'text/event-stream; charset=utf-8', pieces, ...(most !== undefined && { capture: { most } }) });

      it(`are the same wherever its chunks end: ${what}, with ${way}`, () => {
        const expected = { model, usage, requestBody: null, responseBody: null };
        expect(factsOfPieces([body])).to.deep.equal(expected);
        expect(factsOfPieces(cutInto(body, 1)), 'byte by byte').to.deep.equal(expected);
        for (let at = 1; at < body.length; at++) {
          const facts = factsOfPieces([body.subarray(0, at), body.subarray(at)]);
          expect(facts, `cut at ${at}`).to.deep.equal(expected);
        }
        const random = seededRandom(body.length);
        for (let run = 0; run < 50; run++) {
          const pieces: Buffer[] = [];
          for (let at = 0; at < body.length;) {
            const size = 1 + Math.floor(random() * 90);
            pieces.push(body.subarray(at, at + size));
            at += size;
          }
          expect(factsOfPieces(pieces), `run ${run}`).to.deep.equal(expected);
        }
      });

      it(`are captured as one message: ${what}, with ${way}`, () => {
        for (const pieces of [[body], cutInto(body, 1), cutInto(body, 13)]) {
          const { responseBody } = factsOfPieces(pieces, 65_536);
          expect(responseBody).to.equal(response === '' ? body.toString() : response);
        }
      });
    }
  }

  const stream = (pieces: readonly Buffer[]) => factsOf({ type: 'text/event-stream', pieces });

  it('are read as far as the stream was received', () => {
    const body = Buffer.from(
      `data: ${chunk({ content: 'a' }, { usage: { prompt_tokens: 3, completion_tokens: 1 } })}\n\ndata: {"id":"c","mod`,
    );
    expect(stream([body])).to.deep.include({ model: 'gpt-s', usage: counts(3, 1, null) });
  });

  it('are read at both ends of an event of megabytes', () => {
    const completed = `{"type":"response.completed","response":{"id":"r","model":"gpt-r","output":"${'x'.repeat(3e6)}","usage":{"input_tokens":36,"output_tokens":87,"total_tokens":123},"metadata":{"a":"b"}}}`;
    const body = Buffer.from(`event: response.completed\ndata: ${completed}\n\n`);
    for (const size of [body.length, 65_536, 1_000]) {
      const facts = stream(cutInto(body, size));
      expect(facts, `pieces of ${size}`).to.deep.include({ model: 'gpt-r', usage: counts(36, 87, 123) });
    }
  });

  it('are read after an invalid event', () => {
    const good = `data: ${chunk({ content: 'a' }, { usage: { prompt_tokens: 3 } })}\n\n`;
    for (const bad of [
      'data: {"usage":{"prompt_tokens":\n\n',
      `data: ${'['.repeat(1e5)}"usage":{}\n\n`,
      'data\n\n',
      '\u0000\n\n',
      `data: {"usage":{"prompt_tokens":-4}}\n\n`,
    ]) {
      expect(stream([Buffer.from(bad + good)])).to.deep.include({ model: 'gpt-s', usage: counts(3, null, null) });
      expect(stream([Buffer.from(good + bad)]).usage).to.deep.equal(counts(3, null, null));
    }
  });

  it('are read in linear time from an endless line that arrives byte by byte', () => {
    const begun = performance.now();
    const reader = readers().begin('p');
    reader.responseStarted('text/event-stream', null);
    const byte = Buffer.from('x');
    reader.piece(Buffer.from('data: '));
    for (let n = 0; n < 2_000_000; n++) reader.piece(byte);
    reader.piece(Buffer.from(`\n\ndata: ${chunk({}, { usage: { prompt_tokens: 3 } })}\n\n`));
    const facts = reader.facts({
      isServed: true,
      method: 'POST',
      target: '/v1/x',
      requestType: () => undefined,
      upstreamKey: null,
    });
    expect(modelUsageOf(facts.usage)).to.deep.equal(counts(3, null, null));
    expect(performance.now() - begun).to.be.below(10_000); // Quadratic time would take an hour.
  });
});

describe('the model and usage of a compressed response', () => {
  const CODINGS: Record<string, (body: Buffer) => Buffer> = {
    gzip: gzipSync,
    'x-gzip': gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
  };
  const chat = Buffer.from(JSON.stringify(CHAT));
  const expected = { model: 'gpt-test-1', usage: counts(9, 12, 21, 0) };

  for (const [coding, compress] of Object.entries({
    ...CODINGS,
    'deflate, without its header': deflateRawSync,
  })) {
    const name = coding.split(',')[0]!;
    it(`are read in ${coding} from a large response`, () => {
      const noise = Array.from({ length: 20_000 }, (_, n) => ((n * 2_654_435_761) >>> 0).toString(36)).join('');
      const body = Buffer.from(JSON.stringify({ ...CHAT, choices: [noise] }));
      const compressed = compress(body);
      expect(compressed.length).to.be.above(20_000);
      expect(factsOf({ coding: name, pieces: cutInto(compressed, 1_000) })).to.deep.include(expected);
    });

    it(`are read in ${coding} as far as it was received`, () => {
      const { events } = STREAMS['chat with a cumulative usage in each chunk']!;
      const body = Buffer.from(
        `data: ${events[0]!}\n\n${Array.from({ length: 3_000 }, (_, n) => `: ${((n * 2_654_435_761) >>> 0).toString(36)}\n\n`).join('')}`,
      );
      const compressed = compress(body);
      const pieces = [compressed.subarray(0, compressed.length - 2_000)];
      expect(factsOf({ type: 'text/event-stream', coding: name, pieces })).to.deep.include({
        model: 'gpt-s',
        usage: counts(3, 1, null),
      });
    });
  }

  it('are missing if it is too large or invalid', () => {
    const nothing = { model: null, usage: null };
    const bomb = gzipSync(Buffer.from(`{"model":"m","x":"${' '.repeat(8e6)}","usage":{"prompt_tokens":1}}`));
    expect(factsOf({ coding: 'gzip', pieces: [bomb] })).to.deep.include({ model: 'm', usage: null });
    const large = Buffer.alloc(1_100_000);
    expect(factsOf({ coding: 'gzip', pieces: cutInto(large, 50_000) })).to.deep.include(nothing);
    expect(factsOf({ coding: 'gzip', pieces: [chat] })).to.deep.include(nothing);
    expect(factsOf({ coding: 'gzip, br', pieces: [gzipSync(chat)] })).to.deep.include(nothing);
    expect(factsOf({ coding: 'gzip', pieces: [] })).to.deep.include(nothing);
    expect(factsOf({ coding: 'identity', pieces: [chat] })).to.deep.include(expected);
  });

  it('are read only while what is held for all responses, and for those of a project, stays within its limit', () => {
    const all = readers();
    const begin = (project: string) => {
      const reader = all.begin(project);
      reader.responseStarted('application/json', 'br');
      reader.piece(Buffer.alloc(16_000));
    };
    for (let n = 0; n < 3_000; n++) begin('p');
    expect(all.budget.heldBytes).to.be.within(31e6, 32 * 1024 * 1024);
    for (let n = 0; n < 6_000; n++) begin(`p${n % 3}`);
    expect(all.budget.heldBytes).to.be.within(63e6, 64 * 1024 * 1024);
  });
});

describe('captured bodies', () => {
  const KEY = 'a-key-of-the-provider';
  const shown = (exchange: Partial<Exchange>) =>
    factsOf({ pieces: [], capture: { most: 100 }, upstreamKey: KEY, ...exchange });

  it('are unchanged', () => {
    const facts = shown({ asked: '{"model":"m"}', pieces: [Buffer.from('{"a":'), Buffer.from('"é"}')] });
    expect([facts.requestBody, facts.responseBody]).to.deep.equal(['{"model":"m"}', '{"a":"é"}']);
  });

  it('are decoded', () => {
    expect(shown({ coding: 'br', pieces: [brotliCompressSync('{"a":1}')] }).responseBody).to.equal('{"a":1}');
    expect(shown({ coding: 'x', pieces: [Buffer.from('{"a":1}')] }).responseBody).to.equal(
      '[7 bytes of application/json, x]',
    );
  });

  it('are null for empty bodies', () => {
    expect(shown({})).to.deep.include({ requestBody: null, responseBody: null });
  });

  it('state the size and type of binary data', () => {
    const facts = shown({
      type: 'audio/mpeg; x=y',
      pieces: [Buffer.alloc(70_000)],
      requestType: 'multipart/form-data; boundary=x',
      asked: 'ab',
    });
    expect([facts.requestBody, facts.responseBody]).to.deep.equal([
      '[2 bytes of multipart/form-data]',
      '[70000 bytes of audio/mpeg]',
    ]);
  });

  it('are truncated between characters, and marked', () => {
    for (let n = 0; n < 4; n++) {
      const text = 'x'.repeat(n) + '🙂'.repeat(5_000);
      const { responseBody } = shown({ type: 'text/plain', pieces: cutInto(Buffer.from(text), 999) });
      const length = n + Math.floor((100 - n) / 4) * 4;
      expect(responseBody).to.equal(
        `${text.slice(0, n + Math.floor((100 - n) / 4) * 2)}…[cut: ${length} of ${text.length * 2 - n} bytes]`,
      );
    }
  });

  it('replace what is not UTF-8', () => {
    const { responseBody } = shown({ type: 'text/plain', pieces: [Buffer.from([0x61, 0xff, 0xc3, 0x62])] });
    expect(responseBody).to.equal('a\ufffd\ufffdb');
    expect(JSON.parse(JSON.stringify({ responseBody }))).to.deep.equal({ responseBody });
  });

  it('mask secrets, wherever they are truncated', () => {
    const token = `sk-wt-${'A1b2'.repeat(12)}`;
    for (const secret of [token, KEY, 'sk-proj-abcdefgh12345678']) {
      for (let before = 0; before < 110; before++) {
        const text = `${'.'.repeat(before)} ${secret} ${'.'.repeat(before % 2 ? 5_000 : 0)}`;
        const { responseBody, requestBody } = shown({
          type: 'text/plain',
          requestType: 'text/plain',
          asked: text,
          pieces: [Buffer.from(text)],
        });
        for (const body of [responseBody!, requestBody!]) {
          const longest = Math.max(
            0,
            ...[...Array(secret.length + 1).keys()].filter((n) => body.includes(secret.slice(0, n))),
          );
          expect(longest, `${before}: ${body}`).to.be.below(8);
        }
      }
    }
  });

  it('mask many secrets before the end of the buffer', () => {
    const text = `${`${KEY} `.repeat(60)}${'x'.repeat(50)}`;
    const { responseBody } = shown({ type: 'text/plain', pieces: [Buffer.from(text)] });
    expect(responseBody).to.not.include('a-key');
  });

  // Node 26 can serialise what earlier releases can only parse.
  it('of a deeply nested stream show its message, or the stream itself where that cannot be serialised', () => {
    const body = `data: {"type":"response.completed","response":{"x":${'['.repeat(20_000)}${']'.repeat(20_000)}}}\n\n`;
    const { responseBody } = shown({ type: 'text/event-stream', pieces: [Buffer.from(body)] });
    expect(responseBody).to.match(/^(?:data: \{"type":"response\.completed".*|\{"x":\[+)…\[cut: 100 of \d+ bytes\]$/);
  });

  it('are bounded, however many choices a stream has', () => {
    const body = Array.from(
      { length: 20_000 },
      (_, index) => `data: ${JSON.stringify({ choices: [{ index, delta: { content: 'x'.repeat(100) } }] })}\n\n`,
    ).join('');
    const { responseBody } = shown({ type: 'text/event-stream', pieces: cutInto(Buffer.from(body), 10_000) });
    expect(responseBody!.length).to.be.below(200);
  });
});

describe('the model and usage of a cached response', () => {
  it('are the model, and no tokens', () => {
    const all = readers();
    const answer = { headers: ['Content-Type', 'application/json'], body: Buffer.from(JSON.stringify(CHAT)) };
    for (let n = 0; n < 2; n++) {
      const reader = all.begin('p');
      reader.requestBody(Buffer.from('{"model":"alias"}'));
      reader.replayedFromCache(answer);
      const facts = reader.facts({
        isServed: true,
        method: 'POST',
        target: '/v1/x',
        requestType: () => undefined,
        upstreamKey: null,
      });
      expect(facts).to.deep.include({ model: 'gpt-test-1', usage: null, requestBody: null, responseBody: null });
    }
  });
});
