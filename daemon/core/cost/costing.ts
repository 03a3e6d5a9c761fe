/**
 * Computes what requests cost. Amounts are summed in pico-USD, without fractions, and rounded up once, to nano-USD.
 *
 * The counts of a response overlap: the prompt includes what was read from the provider's cache and written to it, and its audio; the
 * completion includes its reasoning and its audio. Each token is billed once, at the price of its most specific kind that has a price.
 */
import { MAX_NANO } from '../../api/money.js';
import type { DetailedUsage } from '../events.js';
import type { Amounts, Price, Tier } from './prices.js';

/** What a provider bills. */
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

/** One line of the computation. */
export interface CostLine {
  kind: CostKind;
  /** Number of tokens; 1 for the request. */
  count: number;
  /** Price of one, in pico-USD. */
  picoEach: bigint;
  pico: bigint;
}

export interface Explanation {
  lines: readonly CostLine[];
  /** The tier that applies: the request has more input tokens than this. Null: no tier applies. */
  aboveInputTokens: number | null;
  /** As `costOf`. */
  nano: number;
}

/**
 * @returns nano-USD; null if a count that the cost depends on is unknown. A count of a part of the prompt or completion, such as
 *   `reasoningTokens`, is 0 if the provider does not report it.
 */
export function costOf(price: Price, usage: DetailedUsage): number | null {
  let pico = 0n;
  const amounts = visitKinds(price, usage, (_kind, count, picoEach) => {
    pico += BigInt(count) * picoEach;
  });
  return amounts === null ? null : nanoFrom(pico);
}

/** The computation of `costOf`, line by line. */
export function explain(price: Price, usage: DetailedUsage): Explanation | null {
  const lines: CostLine[] = [];
  const amounts = visitKinds(price, usage, (kind, count, picoEach) => {
    lines.push({ kind, count, picoEach, pico: BigInt(count) * picoEach });
  });
  if (amounts === null) return null;
  return {
    lines,
    aboveInputTokens: 'aboveInputTokens' in amounts ? amounts.aboveInputTokens : null,
    nano: nanoFrom(lines.reduce((sum, line) => sum + line.pico, 0n)),
  };
}

type VisitKind = (kind: CostKind, count: number, picoEach: bigint) => void;

/** Visits what is paid: kinds with a count above 0. @returns the prices that apply; null if a count that they depend on is not known. */
function visitKinds(price: Price, usage: DetailedUsage, visit: VisitKind): Price | Tier | null {
  const amounts = amountsFor(price, promptOf(usage));
  if (amounts === null || !visitInput(amounts, usage, visit) || !visitOutput(amounts, usage, visit)) return null;
  if (amounts.perRequest > 0n) visit('request', 1, amounts.perRequest);
  return amounts;
}

/** The amounts of the tier that applies; null if that depends on an unknown count. */
function amountsFor(price: Price, promptTokens: number | null): Price | Tier | null {
  if (price.tiers.length === 0) return price;
  if (promptTokens === null) return null;
  return price.tiers.findLast(({ aboveInputTokens }) => promptTokens > aboveInputTokens) ?? price;
}

/** Some providers report only a total, for models without output, or only the output and the total. */
const promptOf = ({ promptTokens, completionTokens, totalTokens }: DetailedUsage): number | null =>
  promptTokens ?? (totalTokens === null ? null : Math.max(0, totalTokens - (completionTokens ?? 0)));

function completionOf({ promptTokens, completionTokens, totalTokens }: DetailedUsage): number | null {
  if (completionTokens !== null) return completionTokens;
  return promptTokens === null || totalTokens === null ? null : Math.max(0, totalTokens - promptTokens);
}

function visitInput(amounts: Amounts, usage: DetailedUsage, visit: VisitKind): boolean {
  const prompt = promptOf(usage);
  if (prompt === null) return isFreeInput(amounts);
  const read = usage.cacheReadTokens ?? 0;
  const write1h = usage.cacheWrite1hTokens ?? 0;
  const write = Math.max(0, (usage.cacheWriteTokens ?? 0) - write1h);
  const audio = usage.audioInputTokens ?? 0;
  const plain = prompt - read - write - write1h - audio;
  const perWrite = amounts.cacheWrite ?? amounts.input;
  if (plain > 0) visit('input', plain, amounts.input);
  if (read > 0) visit('cache read', read, amounts.cacheRead ?? amounts.input);
  if (write > 0) visit('cache write', write, perWrite);
  if (write1h > 0) visit('cache write for 1 hour', write1h, amounts.cacheWrite1h ?? perWrite);
  if (audio > 0) visit('audio input', audio, amounts.audioInput ?? amounts.input);
  return true;
}

function visitOutput(amounts: Amounts, usage: DetailedUsage, visit: VisitKind): boolean {
  const completion = completionOf(usage);
  if (completion === null) return isFreeOutput(amounts);
  const reasoning = usage.reasoningTokens ?? 0;
  const audio = usage.audioOutputTokens ?? 0;
  const plain = completion - reasoning - audio;
  if (plain > 0) visit('output', plain, amounts.output);
  if (reasoning > 0) visit('reasoning', reasoning, amounts.reasoning ?? amounts.output);
  if (audio > 0) visit('audio output', audio, amounts.audioOutput ?? amounts.output);
  return true;
}

const kindsOfInput = ({ input, cacheRead, cacheWrite, cacheWrite1h, audioInput }: Amounts) => [
  input,
  cacheRead,
  cacheWrite,
  cacheWrite1h,
  audioInput,
];
const kindsOfOutput = ({ output, reasoning, audioOutput }: Amounts) => [output, reasoning, audioOutput];
const highestOf = (amounts: readonly (bigint | null)[]) =>
  amounts.reduce<bigint>((most, amount) => (amount !== null && amount > most ? amount : most), 0n);

const isFreeInput = (amounts: Amounts) => highestOf(kindsOfInput(amounts)) === 0n;
const isFreeOutput = (amounts: Amounts) => highestOf(kindsOfOutput(amounts)) === 0n;

/** Whether all requests are free. */
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
      input: highestOf(kindsOfInput(amounts)),
      output: highestOf(kindsOfOutput(amounts)),
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
 * @returns nano-USD, never less than `costOf` for a usage with at most these numbers of prompt and completion tokens.
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
