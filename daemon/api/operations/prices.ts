/** Prices of models. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { EXAMPLE_IDS } from '../schemas/fields.js';

const LIST_DESCRIPTION = `Returns the entries of \`PRICES_FILE\` and of the shipped list, in the order in which they are searched. An entry
with a provider comes before one without, a name before a pattern, and a longer pattern before a shorter one. Amounts are decimal numbers in US
dollars.`;
const CHECK_DESCRIPTION = `Returns the models that were used in the last 30 days and have no price now, for each project. The cost of their requests is
unknown. Add entries for them to \`PRICES_FILE\`, and reload the daemon with SIGHUP: later requests then have a cost.`;
const EXPLAIN_DESCRIPTION = `Returns the entry that applies to a model now, and how the cost of a request with these numbers of tokens is computed.`;

const NO_PARTICULAR = {
  cache_read: null,
  cache_write: null,
  cache_write_1h: null,
  reasoning: null,
  audio_input: null,
  audio_output: null,
  per_request: '0',
} as const;

const EXAMPLE_PRICE = {
  model: 'gpt-4o-mini',
  provider: 'openai',
  source: 'shipped',
  input: '0.15',
  output: '0.6',
  ...NO_PARTICULAR,
  cache_read: '0.075',
  max_output: null,
  context: 128_000,
  part_tokens: null,
  tiers: [],
  valid_from: null,
} as const;

export const prices = {
  listPrices: {
    ...ROUTES.listPrices,
    permission: 'read prices',
    tag: 'Prices',
    summary: 'List prices',
    description: LIST_DESCRIPTION,
    query: schemas.pricesQuery,
    response: schemas.prices,
    refusals: [],
    example: {
      query: { model: 'gpt-4o-mini', provider: 'openai' },
      response: {
        lists: {
          shipped: {
            source: '@pydantic/genai-prices 0.1.8',
            date: '2026-09-23',
            sha256: '0c1d7f6b1e6b0a9d8c7b6a5948372615f4e3d2c1b0a99887766554433221100f',
          },
          file: null,
        },
        price_count: 1,
        prices: [EXAMPLE_PRICE],
      },
    },
  },
  checkPrices: {
    ...ROUTES.checkPrices,
    permission: 'read usage',
    tag: 'Prices',
    summary: 'List models without a price',
    description: CHECK_DESCRIPTION,
    response: schemas.pricesMissing,
    refusals: [],
    example: {
      response: {
        since: '2030-01-01T12:00:00.000Z',
        models: [
          {
            model: 'house-large',
            project_id: EXAMPLE_IDS.project,
            project_name: 'Checkout',
            provider: null,
            unpriced_requests: 120,
          },
        ],
      },
    },
  },
  explainPrice: {
    ...ROUTES.explainPrice,
    permission: 'read projects',
    tag: 'Prices',
    summary: 'Explain a price',
    description: EXPLAIN_DESCRIPTION,
    query: schemas.priceQuery,
    response: schemas.priceExplained,
    refusals: ['not_found'],
    example: {
      query: { model: 'gpt-4o-mini-2024-07-18', provider: 'openai', prompt_tokens: 1000, completion_tokens: 100 },
      response: {
        model: 'gpt-4o-mini-2024-07-18',
        provider: 'openai',
        price: EXAMPLE_PRICE,
        above_input_tokens: null,
        lines: [
          { kind: 'input', count: 1000, usd_each: '0.15', usd: '0.00015' },
          { kind: 'output', count: 100, usd_each: '0.6', usd: '0.00006' },
        ],
        cost_usd: '0.00021',
        at_most_usd: '0.00021',
      },
    },
  },
} as const satisfies Partial<Declared>;
