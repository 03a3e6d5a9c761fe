/** The calls that each SDK makes, and what its user must see. */

export type Kind = 'chat' | 'stream' | 'models' | 'embeddings' | 'tool' | 'upload' | 'count';

/** A call for a driver, as it reads it from standard input. */
export interface Call {
  id: string;
  kind: Kind;
  key: string;
  model: string;
  /** Size of the text, in bytes. */
  size?: number;
  /** Maximum number of retries (default: that of the SDK). */
  retries?: number;
}

/** The result of a call, as a driver prints it. */
export interface CallResult {
  id: string;
  ok?: unknown;
  error?: { class: string; status: number | null; code: string | null; type: string | null; message: string };
}

/** Calls with the same result directly from the provider and through the daemon. */
export const SAME: readonly Omit<Call, 'key'>[] = [
  ...(['chat', 'stream', 'models', 'embeddings', 'tool', 'upload', 'count'] as const).map((kind) => ({
    id: kind,
    kind,
    model: `${kind}-test`, // Tells them apart in a usage report.
  })),
  { id: "a provider's 400", kind: 'chat', model: 'fail-400' },
  { id: "a provider's 429", kind: 'chat', model: 'fail-429', retries: 1 },
  { id: "a provider's 500", kind: 'chat', model: 'fail-500', retries: 1 },
];

export interface Refused {
  status: number;
  code: string;
  type: string;
  /** Part of the message. */
  says: string;
  call?: Partial<Omit<Call, 'id' | 'key'>>;
}

/** With this an SDK gives up that goes by the status. */
export const FORBIDDEN = { status: 403, type: 'permission_error' };
export const UNAUTHORIZED = { status: 401, code: 'unauthorized', type: 'authentication_error' };
const UNKNOWN = {
  ...UNAUTHORIZED,
  says: 'unauthorized: the token is unknown, expired or revoked. Ask its issuer for a new one.',
};

/** Refusals by the daemon, by the credential or call that causes them, in the order of the calls. */
export const REFUSED = {
  'an unknown token': UNKNOWN,
  'an expired token': UNKNOWN,
  'a revoked token': UNKNOWN,
  "a provider's key": { ...UNAUTHORIZED, says: 'a withering token is needed' },
  'an inactive project': {
    ...FORBIDDEN,
    code: 'project_inactive',
    says: 'project is inactive',
  },
  'a spent cap': {
    status: 429,
    code: 'request_limit_reached',
    type: 'insufficient_quota',
    says: 'token request limit reached: ask for another token',
  },
  'too large a body': {
    status: 413,
    code: 'body_too_large',
    type: 'invalid_request_error',
    says: 'request body too large',
    call: { size: 300_000 },
  },
  "a project's wrong key": {
    ...FORBIDDEN,
    code: 'upstream_key_rejected',
    says: "upstream rejected the project's key",
    call: { model: 'fail-401' },
  },
  'a route that is not allowed': {
    ...FORBIDDEN,
    code: 'route_not_allowed',
    says: 'the token may not use this route',
  },
  'a model that is not allowed': {
    ...FORBIDDEN,
    code: 'model_not_allowed',
    says: 'the token may not use this model',
  },
  "a token's rate": {
    status: 429,
    code: 'rate_limited',
    type: 'rate_limit_error',
    says: 'requests per minute of this token exceeded',
    call: { retries: 0 },
  },
  'too many requests at the same time': {
    status: 429,
    code: 'concurrency_limited',
    type: 'rate_limit_error',
    says: 'too many requests of this token at the same time',
    call: { retries: 0 },
  },
  'a rate limit': {
    status: 429,
    code: 'rate_limited',
    type: 'rate_limit_error',
    says: 'rate limit exceeded',
    call: { retries: 0 },
  },
  // This stops the daemon, so it must be the last.
  'a daemon that stops': {
    status: 503,
    code: 'unavailable',
    type: 'server_error',
    says: 'temporarily unavailable',
    call: { model: 'hang', retries: 0 },
  },
} satisfies Record<string, Refused>;

export type RefusedId = keyof typeof REFUSED;
/** For SDKs that do not read X-Should-Retry, and retry only if they are told to. */
export const RETRIED = 'a spent cap, with retries turned on';
/** What the stand-in reports for each of these calls, as `/manage/usage` counts it. */
export const COUNTED: readonly Kind[] = ['chat', 'stream', 'tool'];
export const CUT = 'a revocation in the middle of a stream';
