/** Parses and checks the text of `PRICES_FILE`. docs/prices.md describes its format. */
import { jsonNode, type JsonNode, JsonSyntaxError } from './json-lines.js';
import { PRICED_PROVIDERS } from './priced-providers.js';
import { PRICE_PLACES, REQUEST_PLACES, type WrittenPrice } from './prices.js';

export const MAX_PRICES_FILE_BYTES = 4 * 1024 * 1024;
const MAX_ENTRIES = 10_000;
const MAX_TIERS = 10;
const MAX_MODEL = 200;
const MAX_TOKENS = 1_000_000_000;
const MAX_PROBLEMS = 10;

/** What is wrong, each with its line and member. */
export class PriceFileInvalid extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.problems = problems;
  }
}

/** @returns what is wrong with a value; null if nothing is. */
type Check = (value: unknown) => string | null;

const decimal = (places: number): Check => {
  const isDecimal = new RegExp(`^\\d{1,7}(?:\\.\\d{1,${places}})?$`);
  const problem = `must be a decimal string such as "1.25", with up to ${places} places`;
  return (value) => (typeof value === 'string' && isDecimal.test(value) ? null : problem);
};
const wholeNumber =
  (min: number): Check =>
  (value) =>
    Number.isInteger(value) && Number(value) >= min && Number(value) <= MAX_TOKENS
      ? null
      : `must be a whole number from ${min} to ${MAX_TOKENS.toLocaleString('en-US')}`;
const isModel: Check = (value) =>
  typeof value === 'string' && value.length <= MAX_MODEL && /^[\x21-\x7e]+$/.test(value)
    ? null
    : `must be the name of a model, or a pattern with *, of up to ${MAX_MODEL} characters without spaces`;
const isProvider: Check = (value) =>
  typeof value === 'string' && PRICED_PROVIDERS.includes(value)
    ? null
    : `must be one of ${PRICED_PROVIDERS.join(', ')}; without it the entry applies to all providers`;
const isDay: Check = (value) => {
  const timeMs = typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value) ? Date.parse(value) : NaN;
  const isReal = !Number.isNaN(timeMs) && new Date(timeMs).toISOString().slice(0, 10) === value;
  return isReal ? null : 'must be a day such as "2026-12-01"';
};

const perToken = decimal(PRICE_PLACES);
const AMOUNTS: Readonly<Record<string, Check>> = {
  ['input']: perToken,
  ['output']: perToken,
  ['cache_read']: perToken,
  ['cache_write']: perToken,
  ['cache_write_1h']: perToken,
  ['reasoning']: perToken,
  ['audio_input']: perToken,
  ['audio_output']: perToken,
  ['per_request']: decimal(REQUEST_PLACES),
};
const MEMBERS: Readonly<Record<string, Check>> = {
  ...AMOUNTS,
  ['model']: isModel,
  ['provider']: isProvider,
  ['max_output']: wholeNumber(1),
  ['context']: wholeNumber(1),
  ['part_tokens']: wholeNumber(1),
  ['valid_from']: isDay,
};
const TIER_MEMBERS: Readonly<Record<string, Check>> = { ...AMOUNTS, ['above_input_tokens']: wholeNumber(0) };

/** @throws {PriceFileInvalid} */
export function pricesIn(text: string): WrittenPrice[] {
  return new Reader().read(text);
}

class Reader {
  readonly #problems: string[] = [];
  /** Line of each entry, by its model, provider and date. */
  readonly #lines = new Map<string, number>();

  read(text: string): WrittenPrice[] {
    const root = nodeOf(text);
    const list = this.#object(root, '', ['prices'])?.get('prices');
    const entries = list && this.#list(list, 'prices', MAX_ENTRIES);
    const prices = (entries ?? []).map((entry, at) => this.#entry(entry, `prices[${at}]`));
    if (this.#problems.length > 0) throw new PriceFileInvalid(this.#problems);
    return prices;
  }

  #entry(entry: JsonNode, path: string): WrittenPrice {
    const members = this.#object(entry, path, ['model', 'input', 'output']);
    const price = this.#values(members, path, MEMBERS, ['tiers']);
    const tiers = members?.get('tiers');
    const list = tiers && this.#list(tiers, `${path}.tiers`, MAX_TIERS);
    const written = list?.map((tier, at) => {
      const tierPath = `${path}.tiers[${at}]`;
      return this.#values(this.#object(tier, tierPath, ['above_input_tokens']), tierPath, TIER_MEMBERS);
    });
    this.#noteEntry(entry, path, price);
    return { ...price, ...(written && { tiers: written }) } as unknown as WrittenPrice;
  }

  #noteEntry({ line }: JsonNode, path: string, { model, provider, validFrom }: Record<string, unknown>): void {
    if (typeof model !== 'string') return;
    const key = JSON.stringify([model.toLowerCase(), provider, validFrom]);
    const earlier = this.#lines.get(key);
    if (earlier === undefined) this.#lines.set(key, line);
    else this.#add(line, path, `has the same model, provider and valid_from as the entry in line ${earlier}`);
  }

  /** The values of the members, under their names in WrittenPrice. */
  #values(
    members: ReadonlyMap<string, JsonNode> | null,
    path: string,
    checks: Readonly<Record<string, Check>>,
    others: readonly string[] = [],
  ): Record<string, unknown> {
    const values: Record<string, unknown> = {};
    for (const [name, { line, value }] of members ?? []) {
      if (others.includes(name)) continue;
      const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
      const known = [...Object.keys(checks), ...others].join(', ');
      const problem = check ? check(value) : `is not known; use ${known}`;
      if (problem !== null) this.#add(line, `${path}.${name}`, problem);
      values[name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())] = value;
    }
    return values;
  }

  #object({ line, value }: JsonNode, path: string, required: readonly string[]): ReadonlyMap<string, JsonNode> | null {
    if (!(value instanceof Map)) {
      this.#add(line, path, 'must be an object');
      return null;
    }
    const members = value as ReadonlyMap<string, JsonNode>;
    for (const name of required) {
      if (!members.has(name)) this.#add(line, `${path}${path && '.'}${name}`, 'is missing');
    }
    if (path === '') {
      for (const [name, node] of members) if (!required.includes(name)) this.#add(node.line, name, 'is not known');
    }
    return members;
  }

  #list({ line, value }: JsonNode, path: string, max: number): readonly JsonNode[] {
    if (Array.isArray(value) && value.length <= max) return value as readonly JsonNode[];
    this.#add(line, path, `must be a list of up to ${max.toLocaleString('en-US')} objects`);
    return [];
  }

  #add(line: number, path: string, problem: string): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push(`line ${line}: ${path || 'the file'} ${problem}`);
  }
}

function nodeOf(text: string): JsonNode {
  try {
    return jsonNode(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw new PriceFileInvalid([`line ${error.line}: ${error.message}`]);
    throw error;
  }
}
