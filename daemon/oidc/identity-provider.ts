/** The company's identity provider, through openid-client. Loaded at the first log-in. */
import * as oidc from 'openid-client';
import { isEncryptedOrLocal } from '../../config/urls.js';
import { LogThrottle } from '../core/log-throttle.js';
import type { Clock, Log } from '../core/ports.js';
import { Refusal } from '../core/refusal.js';
import { withTimeout } from '../core/timing.js';
import { type BoundedFetch, boundedFetch, type BoundedFetchOptions, ProviderUnreachable } from './bounded-fetch.js';
import type { Claims } from './role-mapping.js';

/** Secrets of one log-in of a browser, against forged and stolen responses. */
export interface LogInChecks {
  state: string;
  nonce: string;
  /** The code verifier of PKCE. */
  verifier: string;
}

/** What the provider returns for a command line; see RFC 8628, 3.2. */
export interface DeviceGrant {
  deviceCode: string;
  userCode: string;
  verificationUri: string;
  verificationUriComplete: string | null;
  expiresInSeconds: number;
  intervalSeconds: number;
}

export interface IdentityProviderOptions extends Pick<BoundedFetchOptions, 'proxy' | 'proxyBypass'> {
  issuer: string;
  clientId: string;
  clientSecret: string;
  clock: Pick<Clock, 'after' | 'monotonic'>;
  log: Pick<Log, 'info' | 'warn'>;
}

/** The time limit of one step of a log-in, of several requests. Front ends wait longer. */
const STEP_MS = 10_000;
/** How long the provider's configuration and its keys are used before they are read again. */
const CONFIGURATION_MS = 3_600_000;
/** How long a failure to read it is the answer: a provider that is down does not get a request for each log-in. */
const FAILURE_MS = 2_000;
/** Log-ins that wait for the provider at the same time. */
const MAX_CONCURRENT = 32;
const LOG_INTERVAL_MS = 10_000;
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

type Configured = { at: number; configuration: Promise<oidc.Configuration>; hasFailed: boolean };

/** All its methods throw `Refusal`s: `unavailable` if the provider does not respond as it must, `log_in_refused` if it refuses a person. */
export class IdentityProvider {
  readonly #options: IdentityProviderOptions;
  readonly #fetch: BoundedFetch;
  readonly #log: LogThrottle<'info' | 'warn'>;
  #configured: Configured | null = null;
  #running = 0;

  constructor(options: IdentityProviderOptions) {
    this.#options = options;
    this.#fetch = boundedFetch(options);
    this.#log = new LogThrottle(options.clock, options.log, LOG_INTERVAL_MS);
  }

  /** Reads its configuration. @returns whether command lines can log in with it. */
  supportsDevices(): Promise<boolean> {
    return this.#asking((configuration) => Promise.resolve(supportsDevices(configuration)));
  }

  /** @returns where the browser goes. */
  authorizationUrl(redirectUri: string, { state, nonce, verifier }: LogInChecks): Promise<string> {
    return this.#asking(async (configuration) => {
      const url = oidc.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: scopeFor(configuration),
        state,
        nonce,
        // Always, also if the provider does not say that it supports it.
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      });
      if (!isEncryptedOrLocal(url)) throw new ProviderUnreachable('its authorization endpoint is not https');
      return url.href;
    });
  }

  /** @param cameBackTo the redirect URI with the query of the browser. @returns the claims of the person. */
  claimsForCode(cameBackTo: URL, { state, nonce, verifier }: LogInChecks): Promise<Claims> {
    return this.#asking(async (configuration) => {
      const tokens = await oidc.authorizationCodeGrant(configuration, cameBackTo, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      return claimsIn(configuration, tokens);
    });
  }

  beginDevice(): Promise<DeviceGrant> {
    return this.#asking(async (configuration) => {
      if (!supportsDevices(configuration)) {
        throw new ProviderUnreachable('it does not support the device authorization grant');
      }
      return deviceGrantIn(await oidc.initiateDeviceAuthorization(configuration, { scope: scopeFor(configuration) }));
    });
  }

  /** Asks once. @returns `pending` until the person has entered the code; `slow_down` if it was asked too soon. */
  claimsForDevice(deviceCode: string): Promise<Claims | 'pending' | 'slow_down'> {
    return this.#asking(async (configuration) => {
      try {
        const asked = { device_code: deviceCode };
        return await claimsIn(configuration, await oidc.genericGrantRequest(configuration, DEVICE_GRANT, asked));
      } catch (error) {
        if (!(error instanceof oidc.ResponseBodyError)) throw error;
        if (error.error === 'authorization_pending') return 'pending';
        if (error.error === 'slow_down') return 'slow_down';
        throw error;
      }
    });
  }

  async #asking<T>(ask: (configuration: oidc.Configuration) => Promise<T>): Promise<T> {
    if (this.#running >= MAX_CONCURRENT) throw unavailable('too many log-ins wait for the identity provider');
    this.#running += 1;
    try {
      const asked = this.#configuration().then(ask);
      return await withTimeout(this.#options.clock, STEP_MS, asked, () => {
        throw new ProviderUnreachable(`no response within ${STEP_MS / 1000} s`);
      });
    } catch (error) {
      throw this.#refusalOf(error);
    } finally {
      this.#running -= 1;
    }
  }

  #configuration(): Promise<oidc.Configuration> {
    const now = this.#options.clock.monotonic();
    const known = this.#configured;
    if (known && now < known.at + (known.hasFailed ? FAILURE_MS : CONFIGURATION_MS)) return known.configuration;
    const configured: Configured = { at: now, configuration: this.#discovered(), hasFailed: false };
    configured.configuration.catch(() => {
      configured.hasFailed = true;
      configured.at = this.#options.clock.monotonic();
    });
    this.#configured = configured;
    return configured.configuration;
  }

  async #discovered(): Promise<oidc.Configuration> {
    const { issuer, clientId, clientSecret } = this.#options;
    const bounded: oidc.CustomFetch = (url, { method, headers, body }) =>
      // The library sends texts and forms.
      this.#fetch(url, { method, headers, body: body == null ? undefined : String(body as string | URLSearchParams) });
    return oidc.discovery(new URL(issuer), clientId, clientSecret, authenticated, {
      [oidc.customFetch]: bounded,
      execute: [oidc.enableNonRepudiationChecks, ...(issuer.startsWith('http:') ? [acceptHttp] : [])],
    });
  }

  #refusalOf(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    const { issuer } = this.#options;
    const refused = refusedBy(error);
    if (refused !== null) {
      this.#log.record('info', 'log-in refused', (count) => ({ issuer, why: refused, count }), refused);
      return new Refusal('log_in_refused', `log-in refused: ${refused}`);
    }
    const why = whyUnusable(error);
    this.#log.record('warn', 'cannot use the identity provider', (count) => ({ issuer, why, count }), why);
    return unavailable(`the identity provider cannot be used: ${why}`);
  }
}

/** For an issuer on this machine, which may be an http server behind a proxy. `boundedFetch` still requires https of all others. */
// eslint-disable-next-line @typescript-eslint/no-deprecated -- It is only marked so that nobody uses it without need.
const acceptHttp = oidc.allowInsecureRequests;

const unavailable = (message: string) => new Refusal('unavailable', message, { retryAfterSeconds: 5 });

/** Scopes that give claims which a mapping or a name may need. Providers refuse scopes that they do not know. */
function scopeFor(configuration: oidc.Configuration): string {
  const { scopes_supported: supported = ['profile', 'email'] } = configuration.serverMetadata();
  return ['openid', ...['profile', 'email', 'groups'].filter((scope) => supported.includes(scope))].join(' ');
}

const supportsDevices = (configuration: oidc.Configuration) =>
  configuration.serverMetadata().device_authorization_endpoint !== undefined;

/** `client_secret_basic` is what a provider supports that says nothing (OpenID Connect Discovery, 3). */
const authenticated: oidc.ClientAuth = (server, client, body, headers) => {
  const { token_endpoint_auth_methods_supported: supported } = server;
  const isPost = supported?.includes('client_secret_post') && !supported.includes('client_secret_basic');
  (isPost ? oidc.ClientSecretPost() : oidc.ClientSecretBasic())(server, client, body, headers);
};

type Tokens = Pick<Awaited<ReturnType<typeof oidc.genericGrantRequest>>, 'access_token' | 'claims'>;

/** The claims of the ID token, whose signature, issuer, audience, nonce and times openid-client has checked, and further ones of the UserInfo endpoint. */
async function claimsIn(configuration: oidc.Configuration, tokens: Tokens): Promise<Claims> {
  const claims = tokens.claims();
  if (claims === undefined) throw new ProviderUnreachable('it returned no ID token');
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
  const more = await oidc.fetchUserInfo(configuration, tokens.access_token, claims.sub);
  return { ...more, ...claims };
}

const MAX_CODE = 2_000;
const MAX_URI = 1_000;
const LONGEST_SECONDS = 600;
const SHORTEST_INTERVAL_SECONDS = 5;
const LONGEST_INTERVAL_SECONDS = 60;

function deviceGrantIn(response: Awaited<ReturnType<typeof oidc.initiateDeviceAuthorization>>): DeviceGrant {
  const { device_code: deviceCode, user_code: userCode, verification_uri: uri } = response;
  const {
    verification_uri_complete: complete = null,
    expires_in: expiresIn,
    interval = SHORTEST_INTERVAL_SECONDS,
  } = response;
  const isFit =
    deviceCode.length <= MAX_CODE &&
    /^[\x20-\x7e]{1,100}$/.test(userCode) &&
    isWebPage(uri) &&
    (complete === null || isWebPage(complete));
  if (!isFit) throw new ProviderUnreachable('it returned a device code that cannot be used');
  return {
    deviceCode,
    userCode,
    verificationUri: uri,
    verificationUriComplete: complete,
    expiresInSeconds: Math.min(Math.max(1, Math.floor(expiresIn)), LONGEST_SECONDS),
    intervalSeconds: Math.min(Math.max(SHORTEST_INTERVAL_SECONDS, Math.ceil(interval)), LONGEST_INTERVAL_SECONDS),
  };
}

/** It is printed in terminals and opened in browsers. */
const isWebPage = (uri: string) =>
  uri.length <= MAX_URI && /^[\x21-\x7e]+$/.test(uri) && URL.canParse(uri) && isEncryptedOrLocal(new URL(uri));

/** Errors of a response that are about the person or the log-in, not about the provider or its settings. */
const ABOUT_LOG_IN = new Set([
  'access_denied',
  'account_selection_required',
  'consent_required',
  'expired_token',
  'interaction_required',
  'invalid_grant',
  'login_required',
]);

/** The other errors of an authorization endpoint (RFC 6749, 4.1.2.1; OpenID Connect Core, 3.1.2.6). */
const AT_AUTHORIZATION = new Set([
  'invalid_request',
  'invalid_request_object',
  'invalid_request_uri',
  'invalid_scope',
  'registration_not_supported',
  'request_not_supported',
  'request_uri_not_supported',
  'server_error',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_response_type',
]);

const WORDS: Readonly<Record<string, string>> = {
  access_denied: 'access was denied',
  expired_token: 'the code has expired',
  invalid_grant: 'the code is not valid, or was used before',
};

/** @returns why a log-in is refused, in words without anything that the provider or a browser chose; null if it is not about the log-in. */
function refusedBy(error: unknown): string | null {
  if (error instanceof oidc.ResponseBodyError || error instanceof oidc.AuthorizationResponseError) {
    return ABOUT_LOG_IN.has(error.error) ? (WORDS[error.error] ?? error.error) : null;
  }
  if (!(error instanceof oidc.ClientError)) return null;
  switch (error.code) {
    case 'OAUTH_INVALID_RESPONSE':
      return 'the response of the identity provider does not belong to this log-in, or is not signed by it';
    case 'OAUTH_JWT_CLAIM_COMPARISON_FAILED':
      return `the ID token is for another log-in or client${claimOf(error)}`;
    case 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED':
      return 'the ID token has expired, or is not valid yet: compare the clocks';
    case 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED':
      // Of the configuration, it is the issuer.
      return attributeOf(error) === 'issuer'
        ? null
        : 'the responses of the identity provider are about different people';
    case 'OAUTH_KEY_SELECTION_FAILED':
      return 'the identity provider does not publish the key of the ID token';
    default:
      return null;
  }
}

const attributeOf = ({ cause }: Error): unknown => (cause as { attribute?: unknown } | undefined)?.attribute;

/** ` (aud)`: the name of the claim, never its value. */
function claimOf({ cause }: Error): string {
  const claim = ((cause as Error | undefined)?.cause as { claim?: unknown } | undefined)?.claim;
  return typeof claim === 'string' && /^[a-z_]{1,20}$/.test(claim) ? ` (${claim})` : '';
}

/** Why the provider cannot be used, for the log and for the person, who shows it to an operator. */
function whyUnusable(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ProviderUnreachable) return cause.message;
  }
  if (error instanceof oidc.ResponseBodyError || error instanceof oidc.AuthorizationResponseError) {
    // A browser can come back with any text.
    const isKnown = error instanceof oidc.ResponseBodyError || AT_AUTHORIZATION.has(error.error);
    const code = isKnown && /^[a-z_]{1,40}$/.test(error.error) ? error.error : 'an error';
    return error.error === 'invalid_client' || error.error === 'unauthorized_client'
      ? `it refuses the client of llmp (${code}): compare OIDC_CLIENT_ID and OIDC_CLIENT_SECRET, and the grants of the client`
      : `it responded with ${code}`;
  }
  if (!(error instanceof oidc.ClientError)) return 'its response has an unexpected form';
  switch (error.code) {
    case 'OAUTH_RESPONSE_IS_NOT_CONFORM':
      return 'it responded with an unexpected status';
    case 'OAUTH_RESPONSE_IS_NOT_JSON':
    case 'OAUTH_PARSE_ERROR':
      return 'it responded with something else than JSON';
    case 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED':
      return 'it has another issuer than OIDC_ISSUER';
    default:
      return 'its configuration or response has an unexpected form';
  }
}
