import type { ContentFacts, DetailedUsage } from '../events.js';
import { NO_CONTENT_FACTS } from '../events.js';

/** What was read from the bodies of a request and its response, with what decides how the request ended. */
export interface Readings extends ContentFacts {
  usage: DetailedUsage | null;
  /** Whether the usage is that of the whole response, even if this was cut. */
  isUsageFinal: boolean;
  /** The request ran a model, unless the provider refused it: it was no read, and the response is not from the cache. */
  ranModel: boolean;
  /** Code of the error that the provider reported in a response with status 200; null if it did not. */
  error: string | null;
}

export const NO_READINGS: Readings = {
  ...NO_CONTENT_FACTS,
  usage: null,
  isUsageFinal: false,
  ranModel: false,
  error: null,
};
