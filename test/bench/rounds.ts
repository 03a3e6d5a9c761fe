/** Several services under the same load, in turn and several times, so that other load on the machine affects all of them equally. */
import type { Measurable } from './baselines.js';
import { median, medianOrNull, type Row } from './figures.js';
import { load, probe } from './load.js';
import { cpuMs, treeCpuMs } from './machine.js';
import type { Bench } from './run.js';

/** One service in one round. */
export interface RoundResult {
  requestsPerS: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU time per request, of all its processes; null if the system does not report it. It hardly depends on other load on the machine. */
  cpuUs: number | null;
  /** The share of the time in which it was running, 1 being one core. If it is much below 1, it did not limit the load. */
  busy: number | null;
}

/** The rounds of each service, by its name. */
export type Rounds = ReadonlyMap<string, readonly RoundResult[]>;

export async function compare(bench: Bench, services: readonly Measurable[]): Promise<Rounds> {
  const { rounds, warmUpSeconds } = bench.options;
  for (const { name, target } of services) {
    await probe(target);
    if (warmUpSeconds === 0) continue;
    console.error(`${name}: warming up`);
    await load(bench, target, { ...bench.options, seconds: warmUpSeconds });
  }
  const measured = new Map<string, RoundResult[]>(services.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const service of services) {
      const result = await measure(bench, service);
      measured.get(service.name)?.push(result);
      console.error(`round ${round} of ${rounds}, ${service.name}: ${Math.round(result.requestsPerS)} requests/s`);
    }
  }
  return measured;
}

async function measure(bench: Bench, { service, target }: Measurable): Promise<RoundResult> {
  const before = treeCpuMs(service.pid);
  const { requests, seconds, p50Ms, p99Ms } = await load(bench, target, bench.options);
  const usedMs = cpuMs(service.pid) === null ? null : treeCpuMs(service.pid) - before;
  return {
    requestsPerS: requests / seconds,
    p50Ms,
    p99Ms,
    cpuUs: usedMs === null ? null : (usedMs * 1_000) / requests,
    busy: usedMs === null ? null : usedMs / (seconds * 1_000),
  };
}

/** The median of each figure, a line for each service. */
export const rowsOf = (rounds: Rounds): Row[] =>
  [...rounds].map(([service, measured]) => {
    const busy = medianOrNull(measured.map((round) => round.busy));
    return {
      service,
      'requests/s': median(measured.map(({ requestsPerS }) => requestsPerS)),
      'p50 ms': median(measured.map(({ p50Ms }) => p50Ms)),
      'p99 ms': median(measured.map(({ p99Ms }) => p99Ms)),
      'CPU µs/request': medianOrNull(measured.map(({ cpuUs }) => cpuUs)),
      'its core busy %': busy === null ? null : busy * 100,
    };
  });

const BUSY_ENOUGH = 0.9;

/** @returns a warning if one of `names` did not limit the load, so that its requests/s mean little. */
export function idleWarning(rounds: Rounds, ...names: string[]): string | undefined {
  const idle = names.filter((name) => {
    const busy = medianOrNull((rounds.get(name) ?? []).map((round) => round.busy));
    return busy !== null && busy < BUSY_ENOUGH;
  });
  if (idle.length === 0) return undefined;
  return `${idle.join(' and ')} had idle time, or did not get its core: compare the CPU time, not requests/s`;
}

/** The median over the rounds of one service's figure divided by another's in the same round; NaN if one is unknown. */
export function ratio(
  rounds: Rounds,
  one: string,
  other: string,
  read: (measured: RoundResult) => number | null,
): number {
  const others = rounds.get(other) ?? [];
  const ratios = (rounds.get(one) ?? []).map((measured, round) => {
    const divisor = others[round];
    return (read(measured) ?? NaN) / ((divisor && read(divisor)) ?? NaN);
  });
  return ratios.some(Number.isNaN) ? NaN : median(ratios);
}
