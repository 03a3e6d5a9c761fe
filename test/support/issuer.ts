/**
 * An identity provider on loopback: `oidc-provider`, which nobody here wrote. Its one person is logged in without a form. Tests can
 * replace its ID tokens, and answer in its place.
 */
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import Provider, { type Adapter, type AdapterPayload, type Configuration } from 'oidc-provider';
import { canary } from './canaries.js';

export const CLIENT_ID = 'llmp';

type Json = Record<string, unknown>;

export interface TestIssuer {
  /** `http://HOST:PORT`. */
  url: string;
  clientSecret: string;
  /** The person with this `sub`, as in the audit log. */
  actorOf(sub: string): string;
  /** Who logs in next, with the claims: `sub` and more. */
  person: Json;
  /** What the person does: false denies the log-in. */
  consents: boolean;
  /** Whether the person has to press a button to log in. */
  asks: boolean;
  /** Whether it refuses requests without PKCE. */
  requiresPkce: boolean;
  /** Replaces each ID token, from the claims of the real one. */
  forge: ((claims: Json, keys: IssuerKeys) => string) | null;
  /** Changes the configuration document. */
  configuration: (document: Json) => Json;
  /** Answers in place of the provider. @returns whether it did. */
  intercept: (req: IncomingMessage, res: ServerResponse) => boolean;
  /** The requests of anybody, such as `POST /token`. */
  requests: string[];
  stop(): Promise<void>;
}

export interface IssuerKeys {
  kid: string;
  privateKey: KeyObject;
  publicKey: KeyObject;
}

/** Made once: that takes a tenth of a second. */
let made: IssuerKeys | undefined;
const issuerKeys = () => (made ??= { kid: 'test', ...generateKeyPairSync('rsa', { modulusLength: 2048 }) });

const SCOPES = { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email', 'email_verified'] };

export interface TestIssuerOptions {
  /** Where the provider may send browsers back to. */
  redirectUri: string;
  /** Default: 127.0.0.1. */
  host?: string;
}

export async function startIssuer({ redirectUri, host = '127.0.0.1' }: TestIssuerOptions): Promise<TestIssuer> {
  const keys = issuerKeys();
  const server = createServer();
  await once(server.listen(0, host), 'listening');
  const url = `http://${host}:${(server.address() as AddressInfo).port}`;
  const clientSecret = canary('password');
  const issuer: TestIssuer = {
    url,
    clientSecret,
    actorOf: (sub) => `person:${url}#${sub}`,
    person: { sub: 'ana' },
    consents: true,
    asks: false,
    requiresPkce: true,
    forge: null,
    configuration: (document) => document,
    intercept: () => false,
    requests: [],
    stop: async () => {
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
  const provider = new Provider(url, configurationOf(issuer, keys, redirectUri));
  provider.use(async (ctx, next) => {
    await next();
    const body = ctx.body as Json;
    if (ctx.path === '/.well-known/openid-configuration') ctx.body = issuer.configuration(body);
    if (ctx.path === '/token' && issuer.forge && typeof body.id_token === 'string') {
      ctx.body = { ...body, id_token: issuer.forge(claimsIn(body.id_token), keys) };
    }
  });
  const serve = provider.callback();
  server.on('request', (req, res) => {
    issuer.requests.push(`${req.method} ${req.url?.replace(/\?.*/, '')}`);
    if (issuer.intercept(req, res)) return;
    if (!req.url?.startsWith('/interaction/')) void serve(req, res);
    else void interact(provider, issuer, req, res).catch(() => res.writeHead(400).end('this log-in has ended'));
  });
  return issuer;
}

function configurationOf(issuer: TestIssuer, keys: IssuerKeys, redirectUri: string): Configuration {
  const page = (ctx: { body: unknown }, form: string) => {
    ctx.body = `<!doctype html><title>Identity provider</title>${form}<button form="op.deviceConfirmForm">Confirm</button>`;
  };
  const stored = new Map<string, AdapterPayload>();
  return {
    adapter: (kind) => adapterFor(kind, stored),
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: issuer.clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
      },
    ],
    claims: { ...SCOPES, groups: ['groups'] },
    findAccount: (_ctx, accountId) => ({ accountId, claims: () => ({ ...issuer.person, sub: accountId }) }),
    features: {
      devInteractions: { enabled: false },
      deviceFlow: {
        enabled: true,
        userCodeInputSource: (ctx, form) => {
          page(ctx, form);
        },
        userCodeConfirmSource: (ctx, form) => {
          page(ctx, form);
        },
        successSource: (ctx) => {
          page(ctx, 'done');
        },
      },
    },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    jwks: { keys: [{ ...keys.privateKey.export({ format: 'jwk' }), kid: keys.kid, alg: 'RS256', use: 'sig' }] },
    cookies: { keys: ['a key of the test'] },
    pkce: { required: () => issuer.requiresPkce },
    ttl: { Session: 600, Interaction: 600, Grant: 600, AccessToken: 600, IdToken: 600, DeviceCode: 600 },
    renderError: (ctx, out) => {
      ctx.body = out;
    },
  };
}

/** What the provider stores, in memory. Nothing expires by itself: the provider checks that too. */
function adapterFor(kind: string, stored: Map<string, AdapterPayload>): Adapter {
  const prefix = `${kind}:`;
  const found = (isIt: (payload: AdapterPayload) => boolean) =>
    Promise.resolve([...stored].find(([key, payload]) => key.startsWith(prefix) && isIt(payload))?.[1]);
  const done = (act: () => unknown) => {
    act();
    return Promise.resolve(undefined);
  };
  return {
    upsert: (id, payload) => done(() => stored.set(prefix + id, payload)),
    find: (id) => Promise.resolve(stored.get(prefix + id)),
    findByUid: (uid) => found((payload) => payload.uid === uid),
    findByUserCode: (userCode) => found((payload) => payload.userCode === userCode),
    destroy: (id) => done(() => stored.delete(prefix + id)),
    consume: (id) =>
      done(() => Object.assign(stored.get(prefix + id) ?? {}, { consumed: Math.floor(Date.now() / 1000) })),
    revokeByGrantId: (grantId) =>
      done(() => {
        for (const [key, payload] of stored) if (payload.grantId === grantId) stored.delete(key);
      }),
  };
}

/** Logs the person in and consents, or denies. */
async function interact(provider: Provider, issuer: TestIssuer, req: IncomingMessage, res: ServerResponse) {
  if (!issuer.consents) {
    await provider.interactionFinished(req, res, { error: 'access_denied' });
    return;
  }
  const { prompt, params, grantId } = await provider.interactionDetails(req, res);
  const accountId = String(issuer.person.sub);
  if (prompt.name === 'login') {
    if (issuer.asks && req.method === 'GET') {
      // Without an icon, the browser would ask for one.
      const head = '<!doctype html><title>Sign in</title><link rel="icon" href="data:,">';
      res.setHeader('content-type', 'text/html').end(`${head}<form method="post"><button>Sign in</button></form>`);
      return;
    }
    await provider.interactionFinished(req, res, { login: { accountId } });
    return;
  }
  const grant = grantId === undefined ? undefined : await provider.Grant.find(grantId);
  const given = grant ?? new provider.Grant({ accountId, clientId: CLIENT_ID });
  given.addOIDCScope(String(params.scope));
  await provider.interactionFinished(req, res, { consent: { grantId: await given.save() } });
}

const claimsIn = (jwt: string): Json =>
  JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()) as Json;

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A JWT, however wrong. @param alg `none`: without a signature; `HS256`: with the public key as the secret. */
export function jwt(
  claims: Json,
  { kid, privateKey, publicKey }: IssuerKeys,
  alg: 'RS256' | 'HS256' | 'none' = 'RS256',
) {
  const text = `${encoded({ alg, kid, typ: 'JWT' })}.${encoded(claims)}`;
  const signature = {
    RS256: () => sign('sha256', Buffer.from(text), privateKey).toString('base64url'),
    HS256: () =>
      createHmac('sha256', publicKey.export({ type: 'spki', format: 'pem' }))
        .update(text)
        .digest('base64url'),
    none: () => '',
  };
  return `${text}.${signature[alg]()}`;
}

/** A browser of the person at the provider: follows redirects and keeps cookies, until it is sent to another host. */
export class PersonBrowser {
  readonly #origin: string;
  readonly #cookies = new Map<string, string>();

  constructor(issuer: TestIssuer) {
    this.#origin = issuer.url;
  }

  /** @returns where it is sent, away from the provider; or the page at which it stays. */
  async go(to: string, form?: URLSearchParams): Promise<{ to: string; html: string }> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(to, {
      method: form ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { cookie },
      ...(form && { body: form }),
    });
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      this.#cookies.set(name, value);
    }
    const location = response.headers.get('location');
    const html = await response.text();
    if (location === null) return { to, html };
    const next = new URL(location, to);
    return next.origin === this.#origin ? this.go(next.href) : { to: next.href, html };
  }

  /** Enters the code of a device, and confirms it. @returns what the provider then says. */
  async enterCode(verificationUri: string): Promise<string> {
    const entered = await this.go(verificationUri);
    const asked = await this.go(actionOf(entered.html), fieldsOf(entered.html));
    return (await this.go(actionOf(asked.html), fieldsOf(asked.html))).html;
  }
}

const actionOf = (html: string) => /action="([^"]+)"/.exec(html)?.[1] ?? '';

const fieldsOf = (html: string) =>
  new URLSearchParams(
    [...html.matchAll(/<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"/g)].map(
      ([, name = '', value = '']): [string, string] => [name, value],
    ),
  );
