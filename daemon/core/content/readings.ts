import type { ContentFacts, DetailedUsage } from '../events.js';
import { NO_CONTENT_FACTS } from '../events.js';

/**
 * What the last usage of a stream is of: all of it, what came until one of its answers was complete (there may be several), what came until then, or
 * only its prompt.
 */
export type UsageExtent = 'whole' | 'answer' | 'part' | 'beginning';

/** What was read from the bodies of a request and its response, with what decides how the request ended. */
export interface Readings extends ContentFacts {
  usage: DetailedUsage | null;
  /** `part` without a stream or a usage. */
  usageExtent: UsageExtent;
  /** The request ran a model, unless the provider refused it: it was no read, and the response is not from the cache. */
  ranModel: boolean;
  /** Code of the error that the provider reported in a response with status 200; null if it did not. */
  error: string | null;
}

export const NO_READINGS: Readings = {
  ...NO_CONTENT_FACTS,
  usage: null,
  usageExtent: 'part',
  ranModel: false,
  error: null,
};
