import { expect } from 'chai';
import type { RawResponse } from './raw.js';

export interface Expected {
  status: number;
  code: string;
  /** If the specification fixes the text. */
  error?: string;
  /** The request was not for /v1, where the cache is looked up. */
  isElsewhere?: true;
}

export const elsewhere = (expected: Expected): Expected => ({ ...expected, isElsewhere: true });

/** Checks that a response is this refusal, in the shape that refusals have for a client without a dialect. */
export function expectRefusal(answer: RawResponse, { status, code, error, isElsewhere }: Expected): void {
  expect({ status: answer.status, code: answer.json.code }).to.deep.equal({ status, code });
  expectPlain(answer.json);
  expect(answer.json.error).to.be.a('string').that.is.not.empty;
  if (error !== undefined) expect(answer.json.error).to.equal(error);
  expect(answer.json.request_id).to.equal(answer.header('x-request-id'));
  expect(answer.all('x-proxy-cache')).to.deep.equal(isElsewhere ? [] : ['miss']);
  expect(answer.header('content-type')).to.match(/^application\/json/);
}

/** Checks that a body has the shape of an error for a client without a dialect. A hint is optional. */
export function expectPlain(body: Record<string, unknown>): void {
  const { hint, ...rest } = body;
  expect(rest).to.have.all.keys('error', 'code', 'request_id');
  if (hint !== undefined) expect(hint).to.be.a('string').that.is.not.empty;
}

export const MALFORMED: Expected = { status: 400, code: 'malformed_request' };
export const UNAUTHORIZED: Expected = { status: 401, code: 'unauthorized', error: 'unauthorized' };
export const CREDENTIAL_IN_URL: Expected = { status: 401, code: 'credential_in_query' };
export const PROJECT_INACTIVE: Expected = { status: 403, code: 'project_inactive', error: 'project is inactive' };
export const METHOD_NOT_ALLOWED: Expected = { status: 405, code: 'method_not_allowed', error: 'method not allowed' };
export const REQUEST_TIMEOUT: Expected = { status: 408, code: 'request_timeout' };
export const BODY_TOO_LARGE: Expected = { status: 413, code: 'body_too_large', error: 'request body too large' };
export const URI_TOO_LONG: Expected = { status: 414, code: 'uri_too_long' };
export const EXPECTATION_FAILED: Expected = { status: 417, code: 'expectation_failed' };
export const LIMIT_REACHED: Expected = {
  status: 429,
  code: 'request_limit_reached',
  error: 'token request limit reached',
};
export const RATE_LIMITED: Expected = { status: 429, code: 'rate_limited', error: 'rate limit exceeded' };
export const HEADERS_TOO_LARGE: Expected = {
  status: 431,
  code: 'headers_too_large',
  error: 'too many or too large headers',
};
export const CODING_NOT_SUPPORTED: Expected = { status: 501, code: 'not_supported' };
export const VERSION_NOT_SUPPORTED: Expected = { status: 505, code: 'not_supported' };
export const LOOP_DETECTED: Expected = { status: 508, code: 'loop_detected' };
/** Its text says whether the request was sent. */
export const UNREACHABLE: Expected = { status: 502, code: 'upstream_unreachable' };
export const CLOSED_UNANSWERED: Expected = {
  ...UNREACHABLE,
  error: 'the provider closed the connection before it responded; the request may have been received',
};
export const KEY_REJECTED: Expected = {
  status: 502,
  code: 'upstream_key_rejected',
  error: "upstream rejected the project's key",
};
export const UPSTREAM_MALFORMED: Expected = {
  status: 502,
  code: 'upstream_malformed',
  error: 'upstream answered malformed',
};
export const UNAVAILABLE: Expected = { status: 503, code: 'unavailable', error: 'temporarily unavailable' };
export const UPSTREAM_TIMEOUT: Expected = { status: 504, code: 'upstream_timeout', error: 'upstream timed out' };
