/** The cost of several requests, as all reports have it. */
import { count, nullable, string } from './fields.js';

export const cost = {
  cost_usd: nullable(
    string(
      'What the requests cost by the prices in force when they were served: US dollars, as a decimal number. `0.00` if all requests were free. Requests whose cost is unknown are not included; null if there are such requests and no other request cost anything.',
    ),
  ),
  unpriced_requests: count(
    'Requests that ran a model and whose cost is unknown, because the model has no price or the provider did not report its usage.',
  ),
};
