/**
 * A price book finds the price of a model at a provider among the entries of `PRICES_FILE` and of the shipped list. Of thousands of entries
 * few are used, so an entry is only parsed when it is first found.
 */
import type { PriceSource } from '../../api/vocabulary.js';
import { alsoPricedAs } from './priced-providers.js';

/** In pico-USD per token. Null: the price is that of the input or output. */
export interface Amounts {
  input: bigint;
  output: bigint;
  cacheRead: bigint | null;
  cacheWrite: bigint | null;
  /** For writes to the provider's prompt cache that last an hour. */
  cacheWrite1h: bigint | null;
  reasoning: bigint | null;
  audioInput: bigint | null;
  audioOutput: bigint | null;
  /** In pico-USD per request. */
  perRequest: bigint;
}

/** Applies to the whole of a request that has more input tokens. */
export interface Tier extends Amounts {
  aboveInputTokens: number;
}

export interface Price extends Amounts {
  /** The name or pattern with `*` of its entry, in lower case. */
  model: string;
  /** Null: it applies to all providers. */
  provider: string | null;
  source: PriceSource;
  /** The most tokens that the model can respond with; null if that is unknown. */
  maxOutput: number | null;
  /** The most tokens of a request and its response. It is only shown. */
  context: number | null;
  /** The most tokens that one image, audio recording or file in a request can have. */
  partTokens: number | null;
  /** In ascending order. */
  tiers: readonly Tier[];
  /** In ms since the epoch; null: it always applies. */
  validFromMs: number | null;
}

/** As in `PRICES_FILE`: decimal strings, in USD per million tokens. */
export interface WrittenAmounts {
  input?: string;
  output?: string;
  cacheRead?: string;
  cacheWrite?: string;
  cacheWrite1h?: string;
  reasoning?: string;
  audioInput?: string;
  audioOutput?: string;
  /** In USD. */
  perRequest?: string;
}

/** An entry as it is written. Without `input`, the model is not billed in tokens, and has no price. */
export interface WrittenPrice extends WrittenAmounts {
  /** Names or patterns. */
  model: string | readonly string[];
  provider?: string;
  maxOutput?: number;
  context?: number;
  partTokens?: number;
  tiers?: readonly ({ aboveInputTokens: number } & WrittenAmounts)[];
  /** A day, such as `2026-12-01`: it begins at midnight UTC. */
  validFrom?: string;
}

/** An entry for one name or pattern. */
interface Entry {
  /** In lower case. */
  model: string;
  written: WrittenPrice;
  source: PriceSource;
  /** -Infinity: it always applies. */
  validFromMs: number;
  /** Made when it is first used; null if the model is not billed in tokens. */
  price: Price | null | undefined;
}

/** The entries of one provider, or those without a provider. */
interface Group {
  /** By name, the latest first. */
  names: Map<string, Entry[]>;
  /** The longest first; of the same length, the latest first. */
  patterns: Entry[];
}

const MAX_REMEMBERED = 2_000;
// A name is at most this long. See content/facts.ts.
const MAX_NAME = 200;

export class PriceBook {
  /** Those of `PRICES_FILE` first. */
  #sources: readonly Source[] = [];
  /** By provider and model. */
  readonly #remembered = new Map<string | null, Map<string, Price | null>>();
  #rememberedCount = 0;
  /** `#remembered` is valid from `#validFromMs` until `#validToMs`, when other entries begin to apply. */
  #validFromMs = -Infinity;
  #validToMs = -Infinity;

  /** @param file entries of `PRICES_FILE`. @param shipped entries of the shipped list. */
  constructor(file: readonly WrittenPrice[], shipped: readonly WrittenPrice[]) {
    this.replace(file, shipped);
  }

  /** Applies these entries from now on. */
  replace(file: readonly WrittenPrice[], shipped: readonly WrittenPrice[]): void {
    this.#sources = [new Source('file', file), new Source('shipped', shipped)];
    this.#validFromMs = this.#validToMs = -Infinity;
  }

  /**
   * @param model as the provider or the client names it.
   * @param provider of `pricedProviderOf`; null if it is unknown. Then the entries of all providers are searched.
   * @param timeMs when the request is served, in ms since the epoch.
   * @returns null without a price.
   */
  priceOf(model: string, provider: string | null, timeMs: number): Price | null {
    if (model.length > MAX_NAME) return null;
    if (timeMs < this.#validFromMs || timeMs >= this.#validToMs) this.#forget(timeMs);
    const known = this.#remembered.get(provider)?.get(model);
    if (known !== undefined) return known;
    const price = this.#find(model, provider, timeMs);
    if (this.#rememberedCount >= MAX_REMEMBERED) this.#forget(timeMs);
    let ofProvider = this.#remembered.get(provider);
    if (!ofProvider) this.#remembered.set(provider, (ofProvider = new Map<string, Price | null>()));
    ofProvider.set(model, price);
    this.#rememberedCount += 1;
    return price;
  }

  /** All entries with a price, in the order in which they are searched, including those that do not apply yet or any more. */
  *entries(): Generator<Price> {
    for (const source of this.#sources) yield* source.prices();
  }

  #find(model: string, provider: string | null, timeMs: number): Price | null {
    const names = namesOf(model);
    for (const source of this.#sources) {
      const found = provider === null ? source.findAnywhere(names, timeMs) : source.find(names, provider, timeMs);
      if (found) return priceFrom(found);
    }
    return null;
  }

  #forget(timeMs: number): void {
    this.#remembered.clear();
    this.#rememberedCount = 0;
    const changes = this.#sources.flatMap(({ changesMs }) => changesMs);
    this.#validFromMs = Math.max(-Infinity, ...changes.filter((changeMs) => changeMs <= timeMs));
    this.#validToMs = Math.min(Infinity, ...changes.filter((changeMs) => changeMs > timeMs));
  }
}

/** One list of entries. */
class Source {
  /** By provider, in the order of the list; null: without a provider. */
  readonly #groups = new Map<string | null, Group>();
  /** The times at which entries begin to apply. */
  readonly changesMs: readonly number[];

  constructor(source: PriceSource, list: readonly WrittenPrice[]) {
    const changesMs = new Set<number>();
    for (const written of list) {
      const validFromMs = written.validFrom === undefined ? -Infinity : Date.parse(written.validFrom);
      if (validFromMs !== -Infinity) changesMs.add(validFromMs);
      const group = this.#groupOf(written.provider ?? null);
      for (const name of typeof written.model === 'string' ? [written.model] : written.model) {
        addTo(group, { model: name.toLowerCase(), written, source, validFromMs, price: undefined });
      }
    }
    for (const { names, patterns } of this.#groups.values()) {
      for (const entries of names.values()) entries.sort(byTime);
      patterns.sort((one, other) => lengthOf(other) - lengthOf(one) || byTime(one, other));
    }
    this.changesMs = [...changesMs];
  }

  find(names: readonly string[], provider: string, timeMs: number): Entry | null {
    for (const name of [provider, ...alsoPricedAs(provider), null]) {
      const group = this.#groups.get(name);
      const found = group && (namedIn(group, names, timeMs) ?? matchingIn(group, names, timeMs));
      if (found) return found;
    }
    return null;
  }

  /** For an unknown provider. */
  findAnywhere(names: readonly string[], timeMs: number): Entry | null {
    const any = this.#groups.get(null);
    const found = any && (namedIn(any, names, timeMs) ?? matchingIn(any, names, timeMs));
    if (found) return found;
    const groups = [...this.#groups.values()];
    return (
      firstOf(groups, (group) => namedIn(group, names, timeMs)) ??
      firstOf(groups, (group) => matchingIn(group, names, timeMs))
    );
  }

  *prices(): Generator<Price> {
    for (const { names, patterns } of this.#groups.values()) {
      for (const entries of names.values()) yield* entries.map(priceFrom).filter((price) => price !== null);
      yield* patterns.map(priceFrom).filter((price) => price !== null);
    }
  }

  #groupOf(provider: string | null): Group {
    let group = this.#groups.get(provider);
    if (!group) {
      group = { names: new Map(), patterns: [] };
      this.#groups.set(provider, group);
    }
    return group;
  }
}

function addTo({ names, patterns }: Group, entry: Entry): void {
  if (entry.model.includes('*')) {
    patterns.push(entry);
    return;
  }
  const entries = names.get(entry.model);
  if (entries) entries.push(entry);
  else names.set(entry.model, [entry]);
}

const byTime = (one: Entry, other: Entry) =>
  other.validFromMs === one.validFromMs ? 0 : other.validFromMs - one.validFromMs;
const lengthOf = ({ model }: Entry) => model.replaceAll('*', '').length;

function firstOf<T, R>(values: readonly T[], find: (value: T) => R | null): R | null {
  for (const value of values) {
    const found = find(value);
    if (found !== null) return found;
  }
  return null;
}

const namedIn = (group: Group, names: readonly string[], timeMs: number): Entry | null =>
  firstOf(names, (name) => group.names.get(name)?.find(({ validFromMs }) => validFromMs <= timeMs) ?? null);

const matchingIn = (group: Group, names: readonly string[], timeMs: number): Entry | null =>
  group.patterns.find(
    ({ model, validFromMs }) => validFromMs <= timeMs && names.some((name) => matches(model, name)),
  ) ?? null;

/** `*` stands for any text. Takes time in proportion to both lengths: names come from clients. */
export function matches(pattern: string, name: string): boolean {
  const [start = '', ...parts] = pattern.split('*');
  const end = parts.pop();
  if (end === undefined) return pattern === name;
  if (!name.startsWith(start)) return false;
  let at = start.length;
  for (const part of parts) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - at >= end.length && name.endsWith(end);
}

const PATH = /^(?:(?:publishers\/[^/]+\/|accounts\/[^/]+\/)?models\/|publishers\/[^/]+\/)/;
const DATE = /[-@](?:20\d{2}-\d{2}-\d{2}|20\d{6})$/;
const VENDOR = /^[^/]+\//;

/** The names under which a model is looked up: in full, without the prefixes of providers, and without a date. */
function namesOf(model: string): readonly string[] {
  const name = model.toLowerCase();
  const short = name.replace(PATH, '');
  const names = [name, short, short.replace(DATE, '')];
  const bare = short.replace(VENDOR, '');
  return [...new Set([...names, bare, bare.replace(DATE, '')])];
}

const priceFrom = (entry: Entry): Price | null => (entry.price ??= entry.price === null ? null : priceOf(entry));

function priceOf({ model, written, source, validFromMs }: Entry): Price | null {
  if (written.input === undefined) return null;
  return {
    model,
    provider: written.provider ?? null,
    source,
    ...amountsOf(written),
    maxOutput: written.maxOutput ?? null,
    context: written.context ?? null,
    partTokens: written.partTokens ?? null,
    // A tier inherits the members that it omits.
    tiers: (written.tiers ?? [])
      .map((tier) => ({ aboveInputTokens: tier.aboveInputTokens, ...amountsOf({ ...written, ...tier }) }))
      .sort((one, other) => one.aboveInputTokens - other.aboveInputTokens),
    validFromMs: validFromMs === -Infinity ? null : validFromMs,
  };
}

const amountsOf = (written: WrittenAmounts): Amounts => ({
  input: picoPerToken(written.input ?? '0'),
  output: picoPerToken(written.output ?? '0'),
  cacheRead: optional(written.cacheRead),
  cacheWrite: optional(written.cacheWrite),
  cacheWrite1h: optional(written.cacheWrite1h),
  reasoning: optional(written.reasoning),
  audioInput: optional(written.audioInput),
  audioOutput: optional(written.audioOutput),
  perRequest: scaled(written.perRequest ?? '0', PICO_PLACES),
});

/** Places after the point. A pico-USD per token is 0.000001 USD per million tokens. */
export const PRICE_PLACES = 6;
/** As those of a nano-USD. */
export const REQUEST_PLACES = 9;
const PICO_PLACES = 12;

const optional = (text: string | undefined) => (text === undefined ? null : picoPerToken(text));
const picoPerToken = (text: string) => scaled(text, PRICE_PLACES);

/** A decimal number, times ten to the power of `places`, of which it has no more. */
function scaled(text: string, places: number): bigint {
  const [whole = '0', part = ''] = text.split('.');
  return BigInt(whole + part.padEnd(places, '0'));
}
