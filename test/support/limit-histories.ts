/** What random histories of requests with limits have in common. */
import type { Limits } from '../../daemon/api/vocabulary.js';
import type { Limiter } from '../../daemon/core/limiter.js';
import type { HeldClaim, LimitedScope } from '../../daemon/core/ports.js';
import { Refusal } from '../../daemon/core/refusal.js';

export const MINUTE_MS = 60_000;

/** A generator of the same numbers in each run. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function scope(policy: 'token' | 'project', limits: Limits, createdAtMs = Infinity): LimitedScope {
  return { policy, id: policy, limits, createdAtMs, lastUsedAtMs: policy === 'token' ? 0 : null };
}

/** A request enters, wherever it is counted. */
export async function enterSomewhere(
  limiter: Limiter,
  scopes: readonly LimitedScope[],
  runsModel = false,
): Promise<HeldClaim | Refusal> {
  try {
    return await limiter.enter({ scopes, tokenId: 'token', takesSlot: true, isRequest: true, runsModel });
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

/** The largest number of times in any 60 s. */
export function mostInAMinute(times: readonly number[]): number {
  let most = 0;
  for (let from = 0, to = 0; to < times.length; to++) {
    while ((times[from] ?? 0) <= (times[to] ?? 0) - MINUTE_MS) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

/** A request that has reached the provider. */
export interface Arrival {
  sentMs: number;
  arrivedMs: number;
}

/** The largest number of requests that were sent and arrived in the same 60 s. They are counted when they are admitted, in between. */
export function mostOnTheWayInAMinute(arrivals: readonly Arrival[]): number {
  const inMinuteFrom = ({ sentMs }: Arrival) =>
    arrivals.filter((other) => other.sentMs >= sentMs && other.arrivedMs < sentMs + MINUTE_MS).length;
  return Math.max(0, ...arrivals.map(inMinuteFrom));
}

/** Adds the time at which a request is sent to its target. */
export const sentAt = (target: string, nowMs: number) => `${target}?sent=${nowMs}`;

/** @param url as the provider has received it. */
export const arrivalOf = (url: string, arrivedMs: number): Arrival => ({
  sentMs: Number(new URL(url, 'http://provider').searchParams.get('sent')),
  arrivedMs,
});
