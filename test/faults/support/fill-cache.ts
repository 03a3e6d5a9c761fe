/**
 * A process of its own that puts many different answers into a cache in memory, and prints what that took. Its arguments:
 * HTTP_CACHE_MAX_BYTES, how long each body is, and how many answers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { MemoryResponseCache } from '../../../daemon/store/memory/response-cache.js';
import { TestClock } from '../../support/clock.js';
import { putDistinct } from '../../support/distinct-answers.js';
import { heldAfterCollection } from './heap.js';

const AT_A_TIME = 1_000;
const BUFFERS_ARE_FREED_WITHIN_MS = 500; // Node does it behind the collection, in a thread of its own.

export interface Filled {
  entries: number;
  bytes: number;
  /** By how much it grew, in bytes: what it held at the end, and its memory in RAM at its largest, garbage and all. */
  held: number;
  resident: number;
}

async function held(): Promise<number> {
  heldAfterCollection();
  await sleep(BUFFERS_ARE_FREED_WITHIN_MS);
  return heldAfterCollection();
}

async function fill(httpCacheMaxBytes: number, bodyBytes: number, answers: number): Promise<Filled> {
  const cache = new MemoryResponseCache({ current: { httpCacheMaxBytes } }, new TestClock({ standsStill: true }));
  putDistinct(cache, { from: answers, count: AT_A_TIME, bodyBytes }); // What is made at the first is not what is measured.
  await cache.purge({ kind: 'all' });
  const heldBefore = await held();
  const residentBefore = process.memoryUsage.rss();
  let highest = 0;
  for (let from = 0; from < answers; from += AT_A_TIME) {
    putDistinct(cache, { from, count: AT_A_TIME, bodyBytes });
    highest = Math.max(highest, process.memoryUsage.rss());
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { ...(await cache.size()), held: (await held()) - heldBefore, resident: highest - residentBefore };
}

const [httpCacheMaxBytes, bodyBytes, answers] = process.argv.slice(2).map(Number);
process.stdout.write(JSON.stringify(await fill(httpCacheMaxBytes!, bodyBytes!, answers!)));
