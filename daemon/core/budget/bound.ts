/**
 * The most that a request can cost, in tokens, as far as its own words say: what a hard budget reserves before anything is forwarded.
 */

/** Whole numbers. The provider cannot bill more than these, however it reads the request. */
export interface Bound {
  model: string;
  /** At whatever price of input, cache writes and audio input included. */
  inputTokens: number;
  /** At whatever price of output, reasoning and audio output included. */
  outputTokens: number;
}

/** The request has no bound. */
export interface Boundless {
  /** Completes `the cost of this request has no bound: …`. */
  why: string;
}

/** What the price entry of a model says of its limits; null: unknown. */
export interface ModelLimits {
  /** Tokens that it can answer with. */
  maxOutput: number | null;
  /** Tokens that an image, an audio or a file can count. */
  partTokens: number | null;
}

export interface BoundedRequest {
  method: string;
  /** Path and query, as the client sent them. */
  target: string;
  /** Null: there is none. */
  contentType: string | null;
  /** All of it, without a content coding; null: there is none. */
  body: Buffer | null;
}

/** @param limitsOf null for a model without a price entry. */
export function boundOf(request: BoundedRequest, limitsOf: (model: string) => ModelLimits | null): Bound | Boundless {
  void limitsOf;
  return { why: `${request.method} ${request.target} is not known` };
}
