/**
 * How much memory V8 takes: for the young generation of its heap, where the data of a request lives and dies, and for its compilers. All of this is set
 * after the start of the process, so it is the same however the daemon is started. An option such as `--max-semi-space-size` would have to be on each
 * command line: V8 reads it once.
 *
 * V8 prints an error for a flag that it does not know, and continues. V8 11, 13 and 14 (Node.js 20, 24 and 26) know all of these.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import type { Clock } from '../core/ports.js';
import { every } from '../core/timing.js';

/**
 * The most to which each half of the young generation grows. V8's own limit is 16 MB, and since V8 13 it is 64 MB. A small one is collected more often,
 * a large one takes memory and does not fit into the processor's cache. On Node.js 24, with 16 MB a chat costs 9 % more CPU time than with 8 MB and a
 * cache hit 2 % more, at 13 MB more memory; with 4 MB they cost 15 % and 3 % more. On 20 there is no difference beyond 5 % between 16 and 8 MB.
 */
const MAX_SEMI_SPACE_BYTES = 8 * 2 ** 20;

/**
 * Disables pretenuring: V8 allocates objects directly in the old generation if most earlier objects of the same line of code survived for a while.
 * A few slow requests are enough for that. From then on these objects keep all data of their request alive until the next full garbage collection,
 * and full collections take two fifths of the time. The data of a request belongs in the young generation.
 */
const PRETENURING_OFF = '--no-allocation-site-pretenuring';

/**
 * Lets the young generation fill up. By default V8 collects it between two turns of the event loop as soon as 80 % of it are used, so a fifth
 * of it is hardly ever used. With 95 %, a sixth fewer requests meet a collection, for up to 10 MB more memory. What is left is enough for one
 * turn, so few collections interrupt one.
 */
const FILL_UP = '--minor-gc-task-trigger=95';

/**
 * Without Maglev, V8's mid-tier compiler, which V8 12 (Node.js 22) turned on. glibc keeps the memory that compilations needed: with Maglev,
 * even if it does not inline, a daemon under load takes 16 MB more. Without it a warm daemon serves 15 % more chats per second of CPU time on Node.js
 * 24, and 6 % more on 26. In the first two seconds of load a chat takes 1.3 to 1.8 times the CPU time, until TurboFan has compiled the same functions.
 */
const NO_MAGLEV = '--no-maglev';

/**
 * WebAssembly here is the parser of responses in undici. While its one large function is optimized, that takes 38 MB, with unrolled loops, and 27 MB
 * without, and a daemon under load 4 MB less. The parser is not slower.
 */
const NO_UNROLLED_LOOPS = '--no-wasm-loop-unrolling';

/** V8 multiplies the size of the young generation with it, once more has survived than its size. On a command line it would take 1 for 2. */
const growthFactor = (factor: number) => `--semi-space-growth-factor=${factor}`;
const NO_GROWTH = 1;

/** For a process that will serve requests, before it loads most modules. Until there is load, the young generation keeps its first size, 1 MB for each half. */
export const V8_FLAGS: readonly string[] = [
  PRETENURING_OFF,
  FILL_UP,
  NO_MAGLEV,
  NO_UNROLLED_LOOPS,
  growthFactor(NO_GROWTH),
];

const CHECK_EVERY_MS = 500;
/** While V8 is to grow the young generation. In a longer time it could do so twice. */
const IS_GROWN_EVERY_MS = 20;
/** The share of the time in which the event loop of a process with load is busy. */
const LOAD = 0.25;

/**
 * From now on the young generation grows to its limit under load, in one step: V8 doubles it only when more has survived than it holds, and of a
 * request hardly anything survives. When the load ends, V8 makes it smaller, and it may grow again.
 */
export function growYoungGeneration(clock: Pick<Clock, 'after'>): void {
  let current = NO_GROWTH;
  let before = performance.eventLoopUtilization();
  const setFactor = (factor: number) => {
    if (factor !== current) setFlagsFromString(growthFactor(factor));
    current = factor;
  };
  const endWhenGrown = () => {
    if (missingFactor() === NO_GROWTH) setFactor(NO_GROWTH);
    if (current !== NO_GROWTH) clock.after(IS_GROWN_EVERY_MS, endWhenGrown);
  };
  every(clock, CHECK_EVERY_MS, () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    const wasGrowing = current !== NO_GROWTH;
    setFactor(utilization < LOAD ? NO_GROWTH : missingFactor());
    if (!wasGrowing) endWhenGrown();
  });
}

/** What the young generation has to be multiplied with to have its largest size. */
const missingFactor = () => Math.max(NO_GROWTH, Math.floor(MAX_SEMI_SPACE_BYTES / semiSpaceBytes()));

/** The size of one half. */
function semiSpaceBytes(): number {
  const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
  return young ? young.space_used_size + young.space_available_size : MAX_SEMI_SPACE_BYTES;
}
