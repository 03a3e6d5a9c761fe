/** The failures among requests, as all reports have them. */
import { count } from './fields.js';

/** What failures are. On the wire their number is `errors`. */
export const FAILURES_ARE =
  'requests that llmp refused, that the provider refused, that failed, or that a revocation cut off';

export const failures = {
  errors: count('Failures: the sum of `refused`, `upstream_refused`, `failed` and `cut`. All other requests are ok.'),
  refused: count('Requests that llmp refused.'),
  upstream_refused: count(
    'Requests that the provider refused: it responded with a status of 400 to 499, such as for its own rate limit.',
  ),
  failed: count(
    'Requests that failed: the provider responded with 500 or above, reported an error within its response, did not respond in time, or did not complete its response; the client did not send its request in time; or llmp failed or stopped.',
  ),
  cut: count('Requests that a revocation ended after they were forwarded, or while they were served from the cache.'),
};
