import type { RequestEnded } from '../events.js';
import { failureKindOf } from '../failure-kind.js';
import { bucketOf } from '../histogram.js';
import { BOUNDS_MS, BUCKETS, COUNTS } from './counts.js';

/** What is counted of a request. One object is filled again for each request, so that none is allocated. */
export class RequestFigures {
  timeMs = 0;
  isHit = false;
  /** The index in `COUNTS` of its kind of failure; -1 if it did not fail. */
  failure = -1;
  promptTokens = 0;
  completionTokens = 0;
  /** The bucket of the time until the response started; -1 without a response. */
  bucket = -1;

  fill(ended: RequestEnded): void {
    const { timeMs, cache, usage, upstreamMs } = ended;
    this.timeMs = timeMs;
    this.isHit = cache === 'hit';
    const kind = failureKindOf(ended);
    this.failure = kind === null ? -1 : COUNTS.indexOf(kind);
    this.promptTokens = usage?.promptTokens ?? 0;
    this.completionTokens = usage?.completionTokens ?? 0;
    this.bucket = upstreamMs === null ? -1 : Math.min(BUCKETS - 1, bucketOf(BOUNDS_MS, upstreamMs));
  }
}
