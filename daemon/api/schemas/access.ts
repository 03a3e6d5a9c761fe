/** Who may do what: roles, projects and ceilings. */
import * as z from 'zod';
import { MAX_CAP, MAX_DURATION_HOURS, MAX_LIMIT, ROLES } from '../vocabulary.js';
import {
  EXAMPLE_IDS,
  about,
  boolean,
  count,
  flag,
  id,
  name,
  nullable,
  paging,
  queryFlag,
  string,
  time,
  timestamp,
  uuid,
  wholeNumber,
} from './fields.js';
import { allowed, budgeted, isNotEmpty, limited, policies, policyFields } from './policies.js';
import { session } from './sessions.js';

/** Maximum number of projects of an operator. */
const MAX_PROJECTS = 200;

export const role = z.enum(ROLES);

export const projects = nullable(z.array(uuid('ID of a project.')).min(1).max(MAX_PROJECTS));

/** The most that a token may have. */
export const ceilings = z
  .strictObject({
    hours: about(wholeNumber(1, MAX_DURATION_HOURS), 'Longest lifetime of a token, in hours.').optional(),
    requests: about(wholeNumber(1, MAX_CAP), 'Largest cap of a token. A token without a cap is beyond it.').optional(),
    active_tokens: about(
      wholeNumber(1, MAX_CAP),
      'Maximum number of tokens of the issuer that are active at the same time.',
    ).optional(),
    ...allowed.shape,
    limits: about(
      limited
        .refine(isNotEmpty)
        .meta({ minProperties: 1 })
        .describe(
          `an object with requests_per_minute, tokens_per_minute or concurrent: whole numbers from 1 to ${MAX_LIMIT}`,
        ),
      'Largest limits of a token. A token without one of them is beyond it.',
    ).optional(),
    budget: about(
      budgeted
        .refine(({ usd, tokens }) => usd !== undefined || tokens !== undefined)
        .describe('an object with usd or tokens or both, and optionally period and mode, as of a token'),
      'Largest budget of a token. A token without a budget is beyond it, and so is one with a shorter period or a mode that refuses less.',
    ).optional(),
  })
  .describe('The most that a token may have. What is absent has no ceiling.');

export const self = z
  .strictObject({
    actor: string(
      'As in the audit log: `management`, `operator:` and a name, or `person:` with the identity provider and the ID that it gave.',
    ),
    name: nullable(string('Name of the operator or the person; null for the holder of the management token.')),
    role: nullable(role.describe('The role; null for the holder of the management token, who may do everything.')),
    projects: nullable(z.array(uuid('ID of a project.'))).describe(
      'The projects that the caller may see; null: all of them.',
    ),
    ceilings: nullable(ceilings).describe('Ceilings of the tokens that the caller issues; null: none.'),
    expires_at: nullable(timestamp('When the credential ends by itself; null: never.')),
  })
  .describe('The caller of the management API.');

export const selfExample: z.input<typeof self> = {
  actor: 'operator:ana',
  name: 'ana',
  role: 'issuer',
  projects: [EXAMPLE_IDS.project],
  ceilings: { hours: 24, active_tokens: 5, budget: { usd: '20.00', period: 'month', mode: 'hard' } },
  expires_at: null,
};

// ---- operators

const operatorFields = {
  projects: about(
    nullable(z.array(id).min(1).max(MAX_PROJECTS)).describe(`a list of 1 to ${MAX_PROJECTS} IDs of projects, or null`),
    'IDs of the projects that the operator may see. Null, the default: all of them.',
  ).optional(),
  expires_at: about(nullable(time), 'When the secret ends by itself. Null, the default: never.').optional(),
  ceilings: about(
    nullable(ceilings).describe(
      'an object with some of hours, requests, active_tokens, routes, models, limits and budget, or null',
    ),
    'The most that a token issued by the operator may have. Null, the default: no ceilings.',
  ).optional(),
};

export const operatorCreate = z
  .strictObject({
    name: about(name, 'Name of the operator, which the audit log shows. It must be unique, and does not change.'),
    role: about(role.describe(`one of ${ROLES.join(', ')}`), 'What the operator may do.'),
    ...operatorFields,
  })
  .describe('A new operator.');

export const operatorPatch = z
  .strictObject({
    role: about(role.describe(`one of ${ROLES.join(', ')}`), 'What the operator may do.').optional(),
    ...operatorFields,
    is_active: about(flag, 'False deactivates the operator; true reactivates it, with the same secret.').optional(),
  })
  .meta({ minProperties: 1 })
  .describe(
    'Changes to an operator. Omitted fields do not change. A change ends the sessions of the operator in the Admin UI.',
  );

export const operatorQuery = z.strictObject(paging);

export const keepTokensQuery = z.strictObject({
  keep_tokens: about(
    queryFlag,
    'True leaves the tokens that the operator has issued as they are. By default, its deactivation revokes them.',
  ).optional(),
});

export const operator = z
  .strictObject({
    id: uuid('ID of the operator.'),
    name: string('Name of the operator.'),
    role: role.describe('What the operator may do.'),
    projects: nullable(z.array(uuid('ID of a project.'))).describe(
      'The projects that the operator may see; null: all of them.',
    ),
    expires_at: nullable(timestamp('When the secret ends by itself; null: never.')),
    ceilings: nullable(ceilings).describe('The most that a token issued by the operator may have; null: no ceilings.'),
    is_active: boolean('False once the operator is deactivated.'),
    obfuscated: string('The secret, mostly masked.'),
    created_at: timestamp('Creation time.'),
    updated_at: timestamp('Time of the last change.'),
    last_used_at: nullable(timestamp('Time of the last request, to the minute; null if there was none.')),
  })
  .describe('An operator, without its secret.');

export const operatorExample: z.input<typeof operator> = {
  id: EXAMPLE_IDS.session,
  name: 'ana',
  role: 'issuer',
  projects: [EXAMPLE_IDS.project],
  expires_at: null,
  ceilings: { hours: 24, active_tokens: 5, budget: { usd: '20.00', period: 'month', mode: 'hard' } },
  is_active: true,
  obfuscated: 'sk-op-4esc…Jgwc',
  created_at: '2030-01-31T12:00:00.000Z',
  updated_at: '2030-01-31T12:00:00.000Z',
  last_used_at: null,
};

export const operatorCreated = operator
  .extend({
    secret: string(
      'The secret, `sk-op-…`, which can be used in place of the management token. Only this response contains it.',
    ),
  })
  .describe('A new operator with its secret.');

// ---- trusts

const claims = z
  .record(z.string().min(1).max(100), z.string().min(1).max(500))
  .refine((match) => Object.keys(match).length <= 20);

const trustFields = {
  match: about(
    claims,
    'Claims that a JWT must have, with these exact values, among them one that identifies its owner.',
  ),
  audience: about(
    z.string().min(1).max(500).describe('a text of 1 to 500 characters'),
    'The `aud` that a JWT must have.',
  ),
  duration_minutes: about(wholeNumber(1, MAX_DURATION_HOURS * 60), 'Lifetime of the tokens, in minutes.'),
  max_requests: about(wholeNumber(0, MAX_CAP), 'Cap of the tokens. 0, the default, means no cap.').optional(),
  name: about(
    z.string().min(1).max(100).describe('a text of 1 to 100 characters'),
    'Name of the tokens, in which `{claim}` stands for a claim of the JWT.',
  ).optional(),
  jwks_file: about(
    nullable(
      z
        .string()
        .min(1)
        .max(200)
        .regex(/^[A-Za-z0-9_-][A-Za-z0-9._-]*$/),
    ),
    'Name of a file in `JWKS_DIR` with the public keys of the issuer. Null, the default: the issuer publishes them.',
  ).optional(),
  max_active: about(
    nullable(wholeNumber(1, MAX_CAP)),
    'Maximum number of tokens that are active at the same time. Null: no maximum.',
  ).optional(),
  per_hour: about(
    nullable(wholeNumber(1, MAX_CAP)),
    'Maximum number of tokens in an hour. Null: no maximum.',
  ).optional(),
  ...policyFields('the tokens'),
};

export const trustCreate = z
  .strictObject({
    issuer: about(z.url().max(500), 'The `iss` of the JWTs: a URL with https, or http for loopback.'),
    project_id: about(id, 'ID of the project of the tokens.'),
    ...trustFields,
  })
  .describe('Exchanges JWTs of an issuer for tokens of a project.');

const { match, audience, duration_minutes: minutes, ...optional } = trustFields;
export const trustPatch = z
  .strictObject({
    match: match.optional(),
    audience: audience.optional(),
    duration_minutes: minutes.optional(),
    ...optional,
    is_active: about(flag, 'False: no JWT is exchanged any more.').optional(),
  })
  .meta({ minProperties: 1 })
  .describe('Changes to a trust. Omitted fields do not change.');

export const trustQuery = z.strictObject(paging);

export const trust = z
  .strictObject({
    id: uuid('ID of the trust.'),
    issuer: string('The `iss` of the JWTs.'),
    audience: string('The `aud` of the JWTs.'),
    match: z.record(z.string(), z.string()).describe('Claims that a JWT must have.'),
    jwks_file: nullable(
      string('Name of the file with the public keys of the issuer; null: the issuer publishes them.'),
    ),
    project_id: uuid('ID of the project of the tokens.'),
    project_name: string('Name of the project of the tokens.'),
    name: string('Name of the tokens, with claims in braces.'),
    duration_minutes: count('Lifetime of the tokens, in minutes.'),
    max_requests: count('Cap of the tokens; 0: none.'),
    ...policies('the tokens'),
    max_active: nullable(count('Maximum number of tokens that are active at the same time; null: no maximum.')),
    per_hour: nullable(count('Maximum number of tokens in an hour; null: no maximum.')),
    is_active: boolean('Whether JWTs are exchanged.'),
    created_at: timestamp('Creation time.'),
    updated_at: timestamp('Time of the last change.'),
  })
  .describe('What exchanges JWTs of an issuer for tokens.');

export const trustExample: z.input<typeof trust> = {
  id: EXAMPLE_IDS.session,
  issuer: 'https://token.actions.githubusercontent.com',
  audience: 'llmp',
  match: { repository: 'acme/web', ref: 'refs/heads/main' },
  jwks_file: null,
  project_id: EXAMPLE_IDS.project,
  project_name: 'Checkout',
  name: 'gha {repository}#{run_id}',
  duration_minutes: 30,
  max_requests: 200,
  allow: null,
  limits: null,
  budget: { usd: '1.00', period: 'none', mode: 'soft' },
  max_active: 20,
  per_hour: 60,
  is_active: true,
  created_at: '2030-01-31T12:00:00.000Z',
  updated_at: '2030-01-31T12:00:00.000Z',
};

// ---- people log in with an identity provider

export const login = z
  .strictObject({ issuer: nullable(string('Issuer of the identity provider; null: people cannot log in with one.')) })
  .describe('How people log in.');

export const webLogin = z
  .strictObject({
    url: string('Where the browser goes.'),
    state: string('Sealed; for the end of the log-in. It belongs in a cookie.'),
  })
  .describe('A log-in of a browser that has begun.');

export const webLoginFinish = z
  .strictObject({
    state: about(
      z.string().min(1).max(4000).describe('the state of the log-in'),
      'The `state` of the response that began the log-in.',
    ),
    query: about(
      z.string().min(1).max(4000).describe('a query'),
      'The query with which the identity provider sent the browser back.',
    ),
  })
  .describe('The end of a log-in of a browser.');

export const deviceLogin = z
  .strictObject({
    device_code: string('Sealed; for the end of the log-in.'),
    user_code: string('The code that the person enters.'),
    verification_uri: string('Where the person enters it.'),
    verification_uri_complete: nullable(
      string('The same with the code; null if the identity provider has no such address.'),
    ),
    expires_in: count('Seconds until the code ends.'),
    interval: count('Seconds between attempts to end the log-in.'),
  })
  .describe('A log-in of a command line that has begun.');

export const deviceLoginFinish = z
  .strictObject({
    device_code: about(
      z.string().min(1).max(4000).describe('the device code'),
      'The `device_code` of the response that began the log-in.',
    ),
  })
  .describe('The end of a log-in of a command line.');

export const sessionCreated = session
  .extend({
    secret: string(
      'The secret, `sk-ss-…`, which can be used in place of the management token until the session ends. Only this response contains it.',
    ),
  })
  .describe('A new session with its secret.');
