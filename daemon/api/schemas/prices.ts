import * as z from 'zod';
import { PRICE_SOURCES } from '../vocabulary.js';
import { about, count, id, nullable, queryNumber, string, timestamp, uuid } from './fields.js';

export const MAX_PRICES = 1_000;
const MAX_TOKENS = 1_000_000_000;

const filterText = z.string().min(1).max(200).describe('1 to 200 characters');

export const pricesQuery = z.strictObject({
  model: about(filterText, 'Only entries whose model contains this text, in any letter case.').optional(),
  provider: about(filterText, 'Only entries of this provider.').optional(),
  limit: about(queryNumber(1, MAX_PRICES), 'Maximum number of entries.').default(MAX_PRICES),
});

const perMillion = (what: string) => string(`${what}, in US dollars per million tokens.`);
const particular = (what: string, general: string) =>
  nullable(string(`${what}, in US dollars per million tokens; null: the price of ${general}.`));

const amounts = {
  input: perMillion('Price of prompt tokens'),
  output: perMillion('Price of completion tokens'),
  cache_read: particular("Price of prompt tokens that are read from the provider's prompt cache", '`input`'),
  cache_write: particular('Price of prompt tokens that are written to the prompt cache', '`input`'),
  cache_write_1h: particular(
    'Price of prompt tokens that are written to the prompt cache for an hour',
    '`cache_write`',
  ),
  reasoning: particular('Price of completion tokens that are reasoning', '`output`'),
  audio_input: particular('Price of prompt tokens that are audio', '`input`'),
  audio_output: particular('Price of completion tokens that are audio', '`output`'),
  per_request: string('Price of each request, in US dollars.'),
};

export const price = z
  .strictObject({
    model: string('The name of the model, or a pattern with `*`, in lower case.'),
    provider: nullable(string('The provider; null if the entry applies to all providers.')),
    source: z.enum(PRICE_SOURCES).describe('`file`: PRICES_FILE. `shipped`: the list of this build.'),
    ...amounts,
    max_output: nullable(count('The most tokens that the model can respond with; null if that is unknown.')),
    context: nullable(count('The most tokens of a request and its response; null if that is unknown.')),
    part_tokens: nullable(
      count('The most tokens that one image, audio recording or file in a request can have; null if that is unknown.'),
    ),
    tiers: z
      .array(
        z
          .strictObject({
            above_input_tokens: count(
              'These prices apply to the whole of a request whose prompt has more tokens than this.',
            ),
            ...amounts,
          })
          .describe('Other prices for long requests.'),
      )
      .describe('The tiers, in ascending order.'),
    valid_from: nullable(timestamp('When the entry begins to apply; null: it always applies.')),
  })
  .describe('What a model costs.');

export const priceLists = z
  .strictObject({
    shipped: z
      .strictObject({
        source: string('Package and version that the list was made from.'),
        date: string('The date on which the package was published.'),
        sha256: string('SHA-256 of the list, in hexadecimal.'),
      })
      .describe('The list of this build.'),
    file: nullable(
      z
        .strictObject({
          entries: count('Number of entries.'),
          sha256: string('SHA-256 of the file, in hexadecimal.'),
        })
        .describe('`PRICES_FILE`, as it was last read; null if it is not set.'),
    ),
  })
  .describe('The price lists in force.');

export const prices = z
  .strictObject({
    lists: priceLists,
    price_count: count('Number of matching entries, without `limit`.'),
    prices: z.array(price).describe('The entries, in the order in which they are searched.'),
  })
  .describe('Prices of models.');

export const pricesMissing = z
  .strictObject({
    since: timestamp('Start of the period.'),
    models: z
      .array(
        z
          .strictObject({
            model: nullable(string('The model; null if neither the client nor the provider named one.')),
            project_id: nullable(uuid('ID of the project.')),
            project_name: nullable(string('Current name of the project; null if it is unknown.')),
            provider: nullable(string('The provider of the project; null if it is unknown.')),
            unpriced_requests: count('Requests that ran the model and whose cost is unknown.'),
          })
          .describe('A model of a project that has no price.'),
      )
      .describe('The models, those with the most requests first.'),
  })
  .describe('Models that were used in the last 30 days and have no price.');

const tokens = (what: string) => about(queryNumber(0, MAX_TOKENS), what).optional();

export const priceQuery = z.strictObject({
  model: about(filterText, 'The model, as the provider or the client names it.'),
  provider: about(
    filterText,
    'The provider. Without it and `project_id`, entries of all providers are searched.',
  ).optional(),
  project_id: about(id, 'Use the provider of this project.').optional(),
  prompt_tokens: tokens('Tokens of the prompt, including those of the prompt cache (default: 1000).'),
  completion_tokens: tokens('Tokens of the completion, including reasoning (default: 1000).'),
  cache_read_tokens: tokens('Part of the prompt that is read from the prompt cache.'),
  cache_write_tokens: tokens('Part of the prompt that is written to the prompt cache.'),
  cache_write_1h_tokens: tokens('Part of `cache_write_tokens` that is written for an hour.'),
  reasoning_tokens: tokens('Part of the completion that is reasoning.'),
  audio_input_tokens: tokens('Part of the prompt that is audio.'),
  audio_output_tokens: tokens('Part of the completion that is audio.'),
});

export const priceExplained = z
  .strictObject({
    model: string('The model of the query.'),
    provider: nullable(string('The provider; null if it is unknown.')),
    price: nullable(price).describe('The entry that applies now; null if the model has no price.'),
    above_input_tokens: nullable(count('The tier that applies to the example; null if none does.')),
    lines: z
      .array(
        z
          .strictObject({
            kind: string('What is billed, such as `input` or `cache read`.'),
            count: count('Number of tokens, or 1 for the request.'),
            usd_each: string('The price of a million tokens, or of a request, in US dollars.'),
            usd: string('The product, in US dollars.'),
          })
          .describe('A line of the arithmetic.'),
      )
      .describe('The arithmetic of the example.'),
    cost_usd: nullable(string('Their sum, rounded up to a billionth of a dollar; null without a price.')),
    at_most_usd: nullable(
      string(
        'The most that these numbers of tokens can cost, if each is of the most expensive kind; null without a price.',
      ),
    ),
  })
  .describe('The price of a model, and what a request costs.');
