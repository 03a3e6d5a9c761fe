import * as z from 'zod';
import { FAILURES_ARE } from './failures.js';
import { KEY_CHECKS, MISSING_USAGES, PROJECT_CHECKS, UPSTREAM_AUTHS } from '../vocabulary.js';
import { policies, policyFields, spent } from './policies.js';
import {
  EXAMPLE_IDS,
  about,
  boolean,
  count,
  flag,
  measure,
  name,
  nullable,
  oneOf,
  paging,
  queryFlag,
  string,
  timestamp,
  upstreamBaseUrl,
  upstreamKey,
  uuid,
} from './fields.js';

const projectName = about(name, 'Name of the project. It must be unique.');
const apiKey = about(
  upstreamKey,
  'API key of the provider, used to forward the requests of the tokens of this project. It is stored encrypted and never returned.',
);

const checkKey = about(
  flag,
  'True checks the API key with the provider before it is stored: llmp requests `/v1/models` with it.',
).optional();

const upstreamFields = {
  upstream_base_url: about(
    nullable(upstreamBaseUrl),
    "Base URL of the provider for the requests of this project, to which the path of a request is appended. Null is the daemon's `UPSTREAM_BASE_URL`. A change to another host must come with `api_key`, because a stored key is only sent to the host that it was given for.",
  ).optional(),
  upstream_auth: about(
    oneOf(UPSTREAM_AUTHS),
    'How the provider receives the API key: `bearer` is `Authorization: Bearer`, the others are names of headers.',
  ).optional(),
};

const missingUsage = about(
  oneOf(MISSING_USAGES),
  'What happens with a streamed chat completion (POST to `…/chat/completions`) without `stream_options`, whose usage the provider would not report: with `off` it passes, its model tokens are not counted, and a budget is charged an estimate, or the bound if it is `hard`; with `bound` every budget is charged the bound if the request has one; with `refuse` it is refused with 400 `usage_not_requested`; with `inject` llmp asks for the usage and removes it from the response.',
).optional();

export const projectCreate = z
  .strictObject({
    name: projectName,
    api_key: apiKey,
    check_key: checkKey,
    ...upstreamFields,
    missing_usage: missingUsage,
    ...policyFields('each token of the project', 'all tokens of the project together'),
  })
  .describe('A new project.');

export const projectPatch = z
  .strictObject({
    name: projectName.optional(),
    api_key: apiKey.optional(),
    check_key: checkKey,
    ...upstreamFields,
    missing_usage: missingUsage,
    ...policyFields('each token of the project', 'all tokens of the project together'),
    is_active: about(
      flag,
      'False deactivates the project: its tokens are refused until it is active again.',
    ).optional(),
  })
  .meta({ minProperties: 1 })
  .describe('Changes to a project. Omitted fields do not change.');

export const projectQuery = z.strictObject({
  ...paging,
  is_active: about(queryFlag, 'Only active (true) or only inactive (false) projects.').optional(),
});

export const project = z
  .strictObject({
    id: uuid('ID of the project.'),
    name: string('Name of the project.'),
    is_active: boolean('Whether the tokens of the project can be used.'),
    api_key_hint: string(
      'Last characters of the API key, to tell keys apart; empty if the key is short. The full key is never returned.',
    ),
    upstream_base_url: nullable(
      string("Base URL of the provider for the requests of this project; null: the daemon's `UPSTREAM_BASE_URL`."),
    ),
    upstream_auth: z
      .enum(UPSTREAM_AUTHS)
      .describe('How the provider receives the API key: in `Authorization: Bearer`, or in the header of this name.'),
    missing_usage: z
      .enum(MISSING_USAGES)
      .describe(
        'What happens with a streamed chat completion that does not ask for its usage: it passes (`off`), it passes and budgets are charged the most that it can cost (`bound`), it is refused (`refuse`), or llmp asks for its usage and removes it from the response (`inject`).',
      ),
    ...policies('each token of the project', 'all tokens of the project together'),
    created_at: timestamp('Creation time.'),
    updated_at: timestamp('Time of the last change.'),
    deactivated_at: nullable(timestamp('Time of deactivation; null while the project is active.')),
    token_count: count('Number of tokens, in any state.'),
    active_token_count: count('Number of tokens that can be used now; 0 while the project is inactive.'),
    last_used_at: nullable(timestamp('Last use of any of its tokens; null if there was none.')),
    requests_24h: count(
      'Requests of its tokens in the current hour and the 23 hours before it. Those of the last few seconds may be missing.',
    ),
    errors_24h: count(`Failures among them: ${FAILURES_ARE}.`),
    spent: spent('all tokens of the project together'),
  })
  .describe('A project holds the API key of a provider. Clients use its tokens in place of the key.');

export const projectChanged = project
  .extend({
    key_check: z
      .enum(KEY_CHECKS)
      .optional()
      .describe(
        'Result of the check of the API key: the provider accepted it, or its response says nothing about the key. Absent if the key was not checked.',
      ),
  })
  .describe('A project after a change.');

export const projectCheck = z
  .strictObject({
    result: z
      .enum(PROJECT_CHECKS)
      .describe(
        'Whether the provider accepted the key (`accepted`), refused it (`key_refused`), responded with 5xx (`provider_error`), or did not respond (`unreachable`). `not_confirmed`: its response says nothing about the key.',
      ),
    reason: nullable(string('What is wrong, as a sentence without a full stop; null for `accepted`.')),
    status: nullable(count("Status of the provider's response; null without a response.")),
    latency_ms: nullable(
      measure(
        "Milliseconds until the first byte of the provider's response, including the time to connect; null without a response.",
      ),
    ),
  })
  .describe("Result of one request to a project's provider with the project's API key.");

export const projectCheckExample: z.input<typeof projectCheck> = {
  result: 'key_refused',
  reason: 'the provider refused the key with status 401',
  status: 401,
  latency_ms: 84,
};

export const projectExample: z.input<typeof project> = {
  id: EXAMPLE_IDS.project,
  name: 'Checkout',
  is_active: true,
  api_key_hint: '4f2a',
  upstream_base_url: null,
  upstream_auth: 'bearer',
  missing_usage: 'off',
  allow: null,
  limits: null,
  budget: null,
  created_at: '2030-01-31T12:00:00.000Z',
  updated_at: '2030-01-31T12:00:00.000Z',
  deactivated_at: null,
  token_count: 12,
  active_token_count: 9,
  last_used_at: '2030-01-31T12:34:56.000Z',
  requests_24h: 4210,
  errors_24h: 17,
  spent: {
    usd: '41.8205',
    tokens: 15_820_977,
    reserved_usd: '0.00',
    unpriced_requests: 12,
    since: '2030-01-31T12:00:00.000Z',
  },
};
