/**
 * A separate process that stores many different responses in a memory cache and prints what that took. Arguments: HTTP_CACHE_MAX_BYTES, the
 * length of each body, and the number of responses.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { MemoryResponseCache } from '../../../daemon/store/memory/response-cache.js';
import { TestClock } from '../../support/clock.js';
import { storeDistinctResponses } from '../../support/distinct-responses.js';
import { heldAfterCollection } from './heap.js';

const AT_A_TIME = 1_000;
const BUFFERS_ARE_FREED_WITHIN_MS = 500; // Node frees it after the collection, in another thread.

export interface Filled {
  entries: number;
  bytes: number;
  /** The growth in bytes: of what is held at the end, and of the highest resident memory, including garbage. */
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
  storeDistinctResponses(cache, { from: answers, count: AT_A_TIME, bodyBytes }); // What the first response allocates is not measured.
  await cache.purge({ kind: 'all' });
  const heldBefore = await held();
  const residentBefore = process.memoryUsage.rss();
  let highest = 0;
  for (let from = 0; from < answers; from += AT_A_TIME) {
    storeDistinctResponses(cache, { from, count: AT_A_TIME, bodyBytes });
    highest = Math.max(highest, process.memoryUsage.rss());
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { ...(await cache.size()), held: (await held()) - heldBefore, resident: highest - residentBefore };
}

const [httpCacheMaxBytes, bodyBytes, answers] = process.argv.slice(2).map(Number);
process.stdout.write(JSON.stringify(await fill(httpCacheMaxBytes!, bodyBytes!, answers!)));
