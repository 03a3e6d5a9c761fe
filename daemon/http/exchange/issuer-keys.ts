/**
 * The public keys of issuers: from the discovery document of an issuer, or from a file. They are cached, so that an issuer that cannot be
 * reached for a while stops nothing, and are asked for again if a JWT names an unknown one: at most once a minute, because anybody can
 * name any.
 */
import { constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { createLocalJWKSet, errors, type JWK, type JWTHeaderParameters, type LocalJWKSet } from 'jose';
import { issuerUrl } from '../../../config/urls.js';
import type { KeySource } from '../../core/exchanges.js';
import type { Clock, Log } from '../../core/ports.js';
import { LogThrottle } from '../../core/log-throttle.js';
import { Refusal } from '../../core/refusal.js';
import { SingleRun } from '../../core/single-run.js';
import { DocumentUnavailable, type ReadDocument } from './documents.js';

/** Keys that an issuer has withdrawn are used for so long at most. */
const FRESH_MS = 600_000;
/** The same while it cannot be asked. */
const STALE_MS = 24 * 3_600_000;
/** Between two requests because of unknown keys. */
const UNKNOWN_MS = 60_000;
/** After a failed request, while the cached keys are used; and after several, while there are none. */
const RETRY_MS = 10_000;
const RETRY_WITHOUT_KEYS_MS = 1_000;
const FAILURES_BEFORE_PAUSE = 3;
const MAX_KEYS = 100;
const MAX_FILE_BYTES = 256 * 1024;
/** Of a number in base64url: 8,192 bits. A larger key takes long to verify with. */
const MAX_MODULUS_LENGTH = 1_366;
const MAX_EXPONENT_LENGTH = 8;
/** Issuers come and go with the trusts that name them. */
const MAX_SOURCES = 1_000;

export interface IssuerKeysOptions {
  readDocument: ReadDocument;
  /** JWKS_DIR; null if it is not set. */
  folder: string | null;
  clock: Pick<Clock, 'monotonic'>;
  log: Pick<Log, 'warn'>;
}

/** Finds the key that a header names. Its errors are those of jose. */
type FindKey = LocalJWKSet;
type VerificationKey = Awaited<ReturnType<FindKey>>;

interface KeyStore {
  find(header: JWTHeaderParameters): Promise<VerificationKey>;
}

export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  readonly #stores = new Map<string, KeyStore>();
  readonly #failures: LogThrottle<'warn'>;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
    this.#failures = new LogThrottle(options.clock, options.log, 60_000);
  }

  /**
   * The key that the header of a JWT names.
   *
   * @throws {Refusal} `invalid_grant` if the issuer has no such key; `unavailable` if its keys are not known and cannot be read.
   */
  async find(source: KeySource, header: JWTHeaderParameters): Promise<VerificationKey> {
    try {
      return await this.#storeOf(source).find(header);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) throw noSuchKey('no key of the issuer matches that of the JWT');
      if (error instanceof errors.JWKSMultipleMatchingKeys)
        throw noSuchKey('several keys of the issuer match that of the JWT');
      if (!(error instanceof DocumentUnavailable)) throw error;
      const { message } = error;
      this.#failures.record('warn', 'cannot read the keys of an issuer', () => ({ ...source, why: message }), message);
      throw new Refusal('unavailable', 'the keys of the issuer are not available now', {
        cause: error,
        retryAfterSeconds: 5,
      });
    }
  }

  #storeOf(source: KeySource): KeyStore {
    const key = JSON.stringify([source.issuer, source.jwksFile]);
    let store = this.#stores.get(key);
    if (!store) {
      const [oldest] = this.#stores.keys();
      if (this.#stores.size >= MAX_SOURCES && oldest !== undefined) this.#stores.delete(oldest);
      const { folder, readDocument, clock } = this.#options;
      store =
        source.jwksFile === null
          ? new PublishedKeys(() => publishedKeys(source.issuer, readDocument), clock)
          : new KeysInFile(folder, source.jwksFile);
      this.#stores.set(key, store);
    }
    return store;
  }
}

const noSuchKey = (message: string) => new Refusal('invalid_grant', message);

class PublishedKeys implements KeyStore {
  readonly #fetch: () => Promise<FindKey>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #fetching = new SingleRun();
  #keys: FindKey | null = null;
  #fetchedAtMs = -Infinity;
  #failures = 0;
  #failedAtMs = -Infinity;
  #failure = new DocumentUnavailable();

  constructor(fetch: () => Promise<FindKey>, clock: Pick<Clock, 'monotonic'>) {
    this.#fetch = fetch;
    this.#clock = clock;
  }

  async find(header: JWTHeaderParameters): Promise<VerificationKey> {
    const known = await this.#current();
    try {
      return await known(header);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || this.#ageMs < UNKNOWN_MS) throw error;
    }
    await this.#refresh();
    return (this.#keys ?? known)(header);
  }

  get #ageMs(): number {
    return this.#clock.monotonic() - this.#fetchedAtMs;
  }

  /** The cached keys, if they are fresh or the issuer cannot be asked. */
  async #current(): Promise<FindKey> {
    if (this.#keys && this.#ageMs < FRESH_MS) return this.#keys;
    const mayWait = this.#keys === null || this.#ageMs >= STALE_MS;
    if (mayWait) await this.#refresh();
    else if (this.#clock.monotonic() >= this.#failedAtMs + RETRY_MS) await this.#refresh().catch(() => undefined);
    return this.#keys as FindKey;
  }

  /** Asks the issuer. Several that wait share a request. @throws {DocumentUnavailable} */
  #refresh(): Promise<void> {
    const isPaused =
      this.#failures >= FAILURES_BEFORE_PAUSE && this.#clock.monotonic() < this.#failedAtMs + RETRY_WITHOUT_KEYS_MS;
    if (isPaused) return Promise.reject(this.#failure);
    return this.#fetching.run(async () => {
      try {
        this.#keys = await this.#fetch();
        this.#fetchedAtMs = this.#clock.monotonic();
        this.#failures = 0;
      } catch (error) {
        this.#failures += 1;
        this.#failedAtMs = this.#clock.monotonic();
        this.#failure = error as DocumentUnavailable;
        throw error;
      }
    });
  }
}

/** @throws {DocumentUnavailable} */
async function publishedKeys(issuer: string, readDocument: ReadDocument): Promise<FindKey> {
  const discovery = await readDocument(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  const { issuer: named, jwks_uri: at } = asObject(discovery);
  if (named !== issuer) throw new DocumentUnavailable('its discovery document is that of another issuer');
  if (typeof at !== 'string' || !isFit(at, issuer))
    throw new DocumentUnavailable('its discovery document has no address of keys (jwks_uri) with https');
  return keysIn(await readDocument(at));
}

/** Only an issuer on this machine may have its keys on it, or without TLS. */
function isFit(at: string, issuer: string): boolean {
  if (!URL.canParse(at)) return false;
  const { protocol, origin } = new URL(at);
  return issuerUrl.parse(origin) !== undefined && (protocol === 'https:' || issuer.startsWith('http:'));
}

const asObject = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

const PUBLIC_MEMBERS = ['kty', 'kid', 'alg', 'use', 'key_ops', 'n', 'e', 'crv', 'x', 'y'] as const;

/** @throws {DocumentUnavailable} */
const keysIn = (document: unknown): FindKey =>
  createLocalJWKSet({
    keys: usableKeysIn(document).map(
      (key) => Object.fromEntries(PUBLIC_MEMBERS.flatMap((name) => (name in key ? [[name, key[name]]] : []))) as JWK,
    ),
  });

/** The keys of a JWKS that a signature can be verified with. @throws {DocumentUnavailable} if there are none. */
export function usableKeysIn(document: unknown): Record<string, unknown>[] {
  const { keys } = asObject(document);
  if (!Array.isArray(keys)) throw new DocumentUnavailable('its document of keys has no keys');
  if (keys.length > MAX_KEYS) throw new DocumentUnavailable(`it has more than ${MAX_KEYS} keys`);
  const fit = keys.map(asObject).filter(isUsable);
  if (fit.length === 0) throw new DocumentUnavailable('it has no keys for RS256, ES256 or EdDSA');
  return fit;
}

function isUsable({ kty, crv, n, e }: Record<string, unknown>): boolean {
  if (kty === 'EC') return crv === 'P-256';
  if (kty === 'OKP') return crv === 'Ed25519';
  const isNumber = (value: unknown, most: number) => typeof value === 'string' && value.length <= most;
  return kty === 'RSA' && isNumber(n, MAX_MODULUS_LENGTH) && isNumber(e, MAX_EXPONENT_LENGTH);
}

/** A file is read again when it was changed. */
class KeysInFile implements KeyStore {
  readonly #folder: string | null;
  readonly #name: string;
  #keys: FindKey | null = null;
  /** Differs for another content. */
  #version = '';

  constructor(folder: string | null, name: string) {
    this.#folder = folder;
    this.#name = name;
  }

  async find(header: JWTHeaderParameters): Promise<VerificationKey> {
    return (await this.#current())(header);
  }

  async #current(): Promise<FindKey> {
    if (this.#folder === null) throw new DocumentUnavailable('JWKS_DIR is not set');
    return inFolder(this.#folder, this.#name, async (path) => {
      const { ino, size, mtimeMs, ctimeMs } = await stat(path);
      const version = [path, ino, size, mtimeMs, ctimeMs].join();
      if (!this.#keys || version !== this.#version) {
        this.#keys = keysIn(await documentIn(path));
        this.#version = version;
      }
      return this.#keys;
    });
  }
}

/** Reads a file of JWKS_DIR as the daemon does. @throws {DocumentUnavailable} */
export const readKeyFile = (folder: string, name: string): Promise<unknown> => inFolder(folder, name, documentIn);

/** @throws {DocumentUnavailable} */
async function inFolder<T>(folder: string, name: string, read: (path: string) => Promise<T>): Promise<T> {
  try {
    // A link may lead to another file of the folder, as in a mounted ConfigMap, but to none outside of it.
    const real = await realpath(folder);
    const path = await realpath(join(real, name));
    if (!path.startsWith(real.endsWith(sep) ? real : real + sep))
      throw new DocumentUnavailable(`${name} is not in JWKS_DIR`);
    return await read(path);
  } catch (error) {
    if (error instanceof DocumentUnavailable) throw error;
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    throw new DocumentUnavailable(`cannot read ${name} in JWKS_DIR: ${code}`);
  }
}

async function documentIn(path: string): Promise<unknown> {
  // Nothing waits for a writer of a named pipe.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new DocumentUnavailable(`${path} is not a file`);
    if (found.size > MAX_FILE_BYTES)
      throw new DocumentUnavailable(`${path} is larger than ${MAX_FILE_BYTES / 1024} KiB`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_FILE_BYTES), 0, MAX_FILE_BYTES, 0);
    return JSON.parse(buffer.toString('utf8', 0, bytesRead)) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) throw new DocumentUnavailable(`${path} is not JSON`);
    throw error;
  } finally {
    await file.close();
  }
}
