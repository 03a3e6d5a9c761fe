/**
 * What requests cost. Amounts are summed in pico-USD, without fractions, and rounded up once, to nano-USD.
 *
 * The counts of a response overlap: the prompt includes what was read from the provider's cache and written to it, and its audio; the
 * completion includes its reasoning and its audio. Each token is paid once, at the price of the most particular kind that has a price.
 */
import { MAX_NANO } from '../../api/money.js';
import type { DetailedUsage } from '../events.js';
import type { Amounts, Price, Tier } from './prices.js';

/** What a price can be for. */
export type CostKind =
  | 'input'
  | 'cache read'
  | 'cache write'
  | 'cache write for 1 hour'
  | 'audio input'
  | 'output'
  | 'reasoning'
  | 'audio output'
  | 'request';

/** One line of the arithmetic. */
export interface CostLine {
  kind: CostKind;
  /** Number of tokens; 1 for the request. */
  count: number;
  /** Of one, in pico-USD. */
  picoEach: bigint;
  pico: bigint;
}

export interface Explanation {
  lines: readonly CostLine[];
  /** The tier that prices the request: it has more input tokens than this; null: none does. */
  aboveInputTokens: number | null;
  /** As `costOf`. */
  nano: number;
}

/**
 * @returns nano-USD; null if a count that it depends on is not known. A count of which only a part of the prompt or the completion is
 *   meant, such as `reasoningTokens`, is 0 if the provider does not report it.
 */
export function costOf(price: Price, usage: DetailedUsage): number | null {
  return explain(price, usage)?.nano ?? null;
}

/** The arithmetic of `costOf`. */
export function explain(price: Price, usage: DetailedUsage): Explanation | null {
  const amounts = amountsFor(price, promptOf(usage));
  if (amounts === null) return null;
  const input = linesOfInput(amounts, usage);
  const output = linesOfOutput(amounts, usage);
  if (input === null || output === null) return null;
  const lines = [...input, ...output, ...linesOf('request', 1, amounts.perRequest)];
  const pico = lines.reduce((sum, line) => sum + line.pico, 0n);
  return {
    lines,
    aboveInputTokens: 'aboveInputTokens' in amounts ? amounts.aboveInputTokens : null,
    nano: nanoFrom(pico),
  };
}

/** Those of the tier that applies; null if that depends on a count that is not known. */
function amountsFor(price: Price, promptTokens: number | null): Price | Tier | null {
  if (price.tiers.length === 0) return price;
  if (promptTokens === null) return null;
  return price.tiers.findLast(({ aboveInputTokens }) => promptTokens > aboveInputTokens) ?? price;
}

/** Some report only a total, for models without an output; or only the output and the total. */
const promptOf = ({ promptTokens, completionTokens, totalTokens }: DetailedUsage): number | null =>
  promptTokens ?? (totalTokens === null ? null : Math.max(0, totalTokens - (completionTokens ?? 0)));

function completionOf({ promptTokens, completionTokens, totalTokens }: DetailedUsage): number | null {
  if (completionTokens !== null) return completionTokens;
  return promptTokens === null || totalTokens === null ? null : Math.max(0, totalTokens - promptTokens);
}

function linesOfInput(amounts: Amounts, usage: DetailedUsage): CostLine[] | null {
  const prompt = promptOf(usage);
  if (prompt === null) return isFreeInput(amounts) ? [] : null;
  const { cacheReadTokens, cacheWriteTokens, cacheWrite1hTokens, audioInputTokens } = usage;
  const write1h = cacheWrite1hTokens ?? 0;
  const write = Math.max(0, (cacheWriteTokens ?? 0) - write1h);
  const read = cacheReadTokens ?? 0;
  const audio = audioInputTokens ?? 0;
  const perWrite = amounts.cacheWrite ?? amounts.input;
  return [
    ...linesOf('input', Math.max(0, prompt - read - write - write1h - audio), amounts.input),
    ...linesOf('cache read', read, amounts.cacheRead ?? amounts.input),
    ...linesOf('cache write', write, perWrite),
    ...linesOf('cache write for 1 hour', write1h, amounts.cacheWrite1h ?? perWrite),
    ...linesOf('audio input', audio, amounts.audioInput ?? amounts.input),
  ];
}

function linesOfOutput(amounts: Amounts, usage: DetailedUsage): CostLine[] | null {
  const completion = completionOf(usage);
  if (completion === null) return isFreeOutput(amounts) ? [] : null;
  const reasoning = usage.reasoningTokens ?? 0;
  const audio = usage.audioOutputTokens ?? 0;
  return [
    ...linesOf('output', Math.max(0, completion - reasoning - audio), amounts.output),
    ...linesOf('reasoning', reasoning, amounts.reasoning ?? amounts.output),
    ...linesOf('audio output', audio, amounts.audioOutput ?? amounts.output),
  ];
}

const linesOf = (kind: CostKind, count: number, picoEach: bigint): CostLine[] =>
  count === 0 || (kind === 'request' && picoEach === 0n)
    ? []
    : [{ kind, count, picoEach, pico: BigInt(count) * picoEach }];

const kindsOfInput = ({ input, cacheRead, cacheWrite, cacheWrite1h, audioInput }: Amounts) => [
  input,
  cacheRead,
  cacheWrite,
  cacheWrite1h,
  audioInput,
];
const kindsOfOutput = ({ output, reasoning, audioOutput }: Amounts) => [output, reasoning, audioOutput];
const dearest = (amounts: readonly (bigint | null)[]) =>
  amounts.reduce<bigint>((most, amount) => (amount !== null && amount > most ? amount : most), 0n);

const isFreeInput = (amounts: Amounts) => dearest(kindsOfInput(amounts)) === 0n;
const isFreeOutput = (amounts: Amounts) => dearest(kindsOfOutput(amounts)) === 0n;

/** Whether nothing costs anything, however much it is. */
export const isFree = (price: Price): boolean =>
  [price, ...price.tiers].every(
    (amounts) => isFreeInput(amounts) && isFreeOutput(amounts) && amounts.perRequest === 0n,
  );

/** The most that a token of each kind costs, in the entry and in each of its tiers. */
interface Most {
  aboveInputTokens: number;
  input: bigint;
  output: bigint;
  perRequest: bigint;
}

const mostOfPrices = new WeakMap<Price, readonly Most[]>();

function mostOf(price: Price): readonly Most[] {
  let most = mostOfPrices.get(price);
  if (!most) {
    most = [{ ...price, aboveInputTokens: -1 }, ...price.tiers].map((amounts) => ({
      aboveInputTokens: amounts.aboveInputTokens,
      input: dearest(kindsOfInput(amounts)),
      output: dearest(kindsOfOutput(amounts)),
      perRequest: amounts.perRequest,
    }));
    mostOfPrices.set(price, most);
  }
  return most;
}

/**
 * The most that these numbers of tokens can cost, whatever kinds of tokens they are.
 *
 * @param inputTokens a whole number, as `outputTokens`.
 * @returns nano-USD, never less than `costOf` for a usage of no more tokens, if the parts of its prompt and completion are no larger than these.
 */
export function mostFor(price: Price, inputTokens: number, outputTokens: number): number {
  const input = BigInt(inputTokens);
  const output = BigInt(outputTokens);
  let most = 0n;
  for (const amounts of mostOf(price)) {
    if (inputTokens <= amounts.aboveInputTokens) break;
    const pico = input * amounts.input + output * amounts.output + amounts.perRequest;
    if (pico > most) most = pico;
  }
  return nanoFrom(most);
}

const PICO_PER_NANO = 1_000n;
const MAX_PICO = BigInt(MAX_NANO) * PICO_PER_NANO;

const nanoFrom = (pico: bigint): number =>
  pico >= MAX_PICO ? MAX_NANO : Number((pico + PICO_PER_NANO - 1n) / PICO_PER_NANO);
