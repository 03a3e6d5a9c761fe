/** `llmp prices`: what models cost, which models have no price, and how the cost of a request is computed. */
import { integer } from '../../config/kinds.js';
import { EXIT } from '../../console/failure.js';
import type { TableColumn, View } from '../../console/table.js';
import type { PriceQuery, WirePrice, WirePriceExplained, WirePricesMissing } from '../../daemon/api/contract.js';
import { counted, exact } from '../../daemon/api/formats.js';
import { command } from '../command.js';
import { idsIn, onlyProject } from '../filters.js';
import { text, value } from '../option.js';

const provider = text('--provider <NAME>', 'only entries of this provider, for example openai');
const PER_MILLION = 'USD per million tokens';

const list = command({
  path: ['prices', 'list'],
  summary: 'list prices of models',
  examples: [
    ['prices list --model gpt-5', 'list the entries whose model contains gpt-5'],
    ['prices list --provider anthropic -o csv', 'list the models of a provider, for a spreadsheet'],
  ],
  options: { provider, model: text('--model <TEXT>', 'only entries whose model contains this text', 'model') },
  async run({ options, output, connect }) {
    const client = await connect();
    const { prices, price_count: count } = await client.prices({
      ...(options.provider !== undefined && { provider: options.provider }),
      ...(options.model !== undefined && { model: options.model }),
    });
    await output.list(prices, pricesView);
    if (prices.length < count) output.note(`First ${exact(prices.length)} of ${exact(count)} entries.`);
    else output.note(`${counted(count, 'price')}, in ${PER_MILLION}.`);
    return EXIT.done;
  },
});

const check = command({
  path: ['prices', 'check'],
  summary: 'list the models that were used in the last 30 days and have no price',
  examples: [
    ['prices check', 'show which entries PRICES_FILE needs'],
    ['prices check -o json', 'print them for a script'],
  ],
  options: {},
  async run({ output, connect }) {
    const client = await connect();
    const { models } = await output.during('waiting for the report', client.pricesMissing());
    await output.list(models, missingView);
    output.note(
      models.length === 0
        ? 'All models that were used in the last 30 days have a price.'
        : 'Add entries for them to PRICES_FILE, and reload the daemon. See: llmp man prices',
    );
    return EXIT.done;
  },
});

const tokens = integer(0, 1_000_000_000);

const explain = command({
  path: ['prices', 'explain'],
  summary: 'show which price applies to a model, and how the cost of a request is computed',
  examples: [
    ['prices explain gpt-4o-mini', 'show the price, and the cost of 1,000 tokens each way'],
    [
      'prices explain claude-sonnet-4-5 --prompt-tokens 12000 --cache-read-tokens 10000',
      'show the cost of a request that uses the prompt cache',
    ],
    ['prices explain my-model --project-id web', 'show the price at the provider of a project'],
  ],
  argument: { name: 'MODEL', meaning: 'the name of the model', required: true, many: false, completes: 'model' },
  options: {
    provider: text('--provider <NAME>', 'the provider, for example openai (default: any)'),
    ...onlyProject,
    promptTokens: value(
      '--prompt-tokens <COUNT>',
      tokens,
      'all tokens of the prompt, including the prompt cache (default: 1000)',
    ),
    completionTokens: value(
      '--completion-tokens <COUNT>',
      tokens,
      'all tokens of the completion, including reasoning (default: 1000)',
    ),
    cacheReadTokens: value('--cache-read-tokens <COUNT>', tokens, 'prompt tokens that are read from the prompt cache'),
    cacheWriteTokens: value(
      '--cache-write-tokens <COUNT>',
      tokens,
      'prompt tokens that are written to the prompt cache',
    ),
    cacheWrite1hTokens: value(
      '--cache-write-1h-tokens <COUNT>',
      tokens,
      'part of --cache-write-tokens that is written for an hour',
    ),
    reasoningTokens: value('--reasoning-tokens <COUNT>', tokens, 'completion tokens that are reasoning'),
    audioInputTokens: value('--audio-input-tokens <COUNT>', tokens, 'prompt tokens that are audio'),
    audioOutputTokens: value('--audio-output-tokens <COUNT>', tokens, 'completion tokens that are audio'),
  },
  prints: () => explainedView.fields,
  async run({ args: [model = ''], options, output, connect }) {
    const ids = idsIn(options);
    const client = await connect();
    const query: PriceQuery = {
      model,
      ...(options.provider !== undefined && { provider: options.provider }),
      ...(await ids(client)),
      ...Object.fromEntries(
        COUNTS.flatMap(([name, key]) => (options[key] === undefined ? [] : [[name, String(options[key])]])),
      ),
    };
    const explained = await client.priceExplained(query);
    if (output.format !== 'table') await output.one(explained, explainedView);
    else output.text(explainedLines(explained).join('\n'));
    return explained.price === null ? EXIT.checkFailed : EXIT.done;
  },
});

export const priceCommands = [list, check, explain];

const COUNTS = [
  ['prompt_tokens', 'promptTokens'],
  ['completion_tokens', 'completionTokens'],
  ['cache_read_tokens', 'cacheReadTokens'],
  ['cache_write_tokens', 'cacheWriteTokens'],
  ['cache_write_1h_tokens', 'cacheWrite1hTokens'],
  ['reasoning_tokens', 'reasoningTokens'],
  ['audio_input_tokens', 'audioInputTokens'],
  ['audio_output_tokens', 'audioOutputTokens'],
] as const;

const amount = (title: string, rank: number, of: (price: WirePrice) => string | null): TableColumn<WirePrice> => ({
  title,
  rank,
  alignRight: true,
  show: (price) => of(price) ?? '-',
});

const pricesView: View<WirePrice> = {
  idOf: ({ model }) => model,
  fields: [
    ...(['model', 'provider', 'source', 'input', 'output', 'cache_read', 'cache_write', 'cache_write_1h'] as const),
    ...(['reasoning', 'audio_input', 'audio_output', 'per_request', 'max_output', 'context', 'part_tokens'] as const),
    ...(['tiers', 'valid_from'] as const),
  ],
  columns: [
    { title: 'MODEL', rank: 0, show: ({ model }) => model, shrinks: true },
    { title: 'PROVIDER', rank: 1, show: ({ provider: name }) => name ?? 'any' },
    amount('INPUT', 0, ({ input }) => input),
    amount('OUTPUT', 0, ({ output }) => output),
    amount('CACHE READ', 2, ({ cache_read: read }) => read),
    amount('CACHE WRITE', 3, ({ cache_write: write }) => write),
    { title: 'SOURCE', rank: 4, show: ({ source }) => source },
  ],
};

type Missing = WirePricesMissing['models'][number];

const missingView: View<Missing> = {
  idOf: ({ model }) => model ?? '-',
  fields: ['model', 'project_id', 'project_name', 'provider', 'unpriced_requests'],
  columns: [
    { title: 'MODEL', rank: 0, show: ({ model }) => model ?? '-', shrinks: true },
    { title: 'PROJECT', rank: 1, show: ({ project_name: name, project_id: id }) => name ?? id ?? '-', shrinks: true },
    { title: 'PROVIDER', rank: 2, show: ({ provider: name }) => name ?? 'unknown' },
    { title: 'REQUESTS', rank: 0, alignRight: true, show: ({ unpriced_requests: requests }) => exact(requests) },
  ],
};

const explainedView: View<WirePriceExplained> = {
  idOf: ({ model }) => model,
  fields: ['model', 'provider', 'price', 'above_input_tokens', 'lines', 'cost_usd', 'at_most_usd'],
  columns: [],
};

function explainedLines({
  model,
  provider: name,
  price,
  above_input_tokens: above,
  ...cost
}: WirePriceExplained): string[] {
  const at = name ?? 'an unknown provider';
  if (price === null)
    return [
      `${model} at ${at} has no price. The cost of its requests is unknown.`,
      'Add an entry to PRICES_FILE. See: llmp man prices',
    ];
  const source = price.source === 'file' ? 'PRICES_FILE' : 'the shipped list';
  const tier = above === null ? '' : `, for more than ${exact(above)} input tokens`;
  return [
    `${model} at ${at}: entry ${price.model} (${price.provider ?? 'any provider'}) of ${source}${tier}`,
    '',
    ...cost.lines.map(({ kind, count, usd_each: each, usd }) =>
      kind === 'request'
        ? `  ${kind.padEnd(22)} $${usd}`
        : `  ${kind.padEnd(22)} ${exact(count)} × $${each} per million = $${usd}`,
    ),
    `  ${'cost'.padEnd(22)} $${cost.cost_usd ?? ''}`,
    `  ${'at most'.padEnd(22)} $${cost.at_most_usd ?? ''}`,
  ];
}
