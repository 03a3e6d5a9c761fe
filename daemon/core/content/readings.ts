import type { ContentFacts } from '../events.js';
import { NO_CONTENT_FACTS } from '../events.js';

/** What was read from the bodies of a request and its response, with what decides how the request ended. */
export interface Readings extends ContentFacts {
  /** Code of the error that the provider reported in a response with status 200; null if it did not. */
  error: string | null;
}

export const NO_READINGS: Readings = { ...NO_CONTENT_FACTS, error: null };
