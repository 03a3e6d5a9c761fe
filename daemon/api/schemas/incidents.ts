import * as z from 'zod';
import { INCIDENT_KINDS } from '../vocabulary.js';
import { count, EXAMPLE_IDS, measure, nullable, string, timestamp, uuid } from './fields.js';

export const incident = z
  .strictObject({
    kind: z
      .enum(INCIDENT_KINDS)
      .describe(
        "What is wrong. `key_refused`: the provider refuses the project's key. `failing_project` and `failing_token`: requests of a project or of one token fail. `unknown_tokens`: requests with unknown tokens. `slow_provider`: responses start later than before.",
      ),
    project_id: nullable(uuid('ID of the project; null for `unknown_tokens`.')),
    project_name: nullable(string('Name of the project; null if it is unknown.')),
    token_id: nullable(uuid('ID of the token, for `failing_token`; otherwise null.')),
    token_name: nullable(string('Name of the token; null if it has none, or if there is no token.')),
    why: string('The cause, in two or three words.'),
    remedy: nullable(string('What to do about it; null if nothing is known.')),
    failures: count('Number of failures with this cause.'),
    requests: count('Number of all requests of the token or project; for `unknown_tokens`, of all.'),
    tokens: count('Number of tokens with these failures.'),
    p50_ms: nullable(
      measure(
        'For `slow_provider`: median time until a response started, in milliseconds. Approximate. Otherwise null.',
      ),
    ),
    earlier_p50_ms: nullable(measure('The same in the part of the hour before. Otherwise null.')),
  })
  .describe('Something that is wrong now, with one cause.');

export const incidents = z
  .strictObject({
    from: timestamp('Start of the minutes that were looked at.'),
    to: timestamp('When they were read.'),
    incidents: z.array(incident).describe('What is wrong, the most urgent first; empty if nothing is.'),
  })
  .describe('What is wrong now.');

export const incidentExample: z.input<typeof incident> = {
  kind: 'key_refused',
  project_id: EXAMPLE_IDS.project,
  project_name: 'Checkout',
  token_id: null,
  token_name: null,
  why: 'key refused',
  remedy: 'give the project a key that its provider accepts',
  failures: 84,
  requests: 91,
  tokens: 7,
  p50_ms: null,
  earlier_p50_ms: null,
};
