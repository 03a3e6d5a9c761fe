/** A stand-in for an issuer of JWTs, such as GitHub Actions: a discovery document, public keys, and JWTs that tests sign. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';

export type Algorithm = 'RS256' | 'ES256' | 'ES384' | 'EdDSA';

export interface SigningKey {
  algorithm: Algorithm;
  kid: string;
  privateKey: CryptoKey;
  /** As the issuer publishes it. */
  jwk: JWK;
}

export async function signingKey(algorithm: Algorithm, kid: string = randomUUID()): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' };
  return { algorithm, kid, privateKey, jwk };
}

/** @param header replaces members of the usual one. */
export const signed = (
  claims: object,
  { algorithm, kid, privateKey }: SigningKey,
  header: object = {},
): Promise<string> =>
  new SignJWT({ ...claims }).setProtectedHeader({ alg: algorithm, kid, typ: 'JWT', ...header }).sign(privateKey);

export class StandInIssuer {
  readonly #server: Server;
  /** The one that signs. */
  key!: SigningKey;
  /** What it publishes. */
  keys: JWK[] = [];
  /** Paths of the requests that it got. */
  readonly asked: string[] = [];
  /** Answers in its place; returns false to leave the request to it. */
  answer: ((req: IncomingMessage, res: ServerResponse) => boolean) | undefined;

  private constructor() {
    this.#server = createServer((req, res) => {
      this.asked.push(req.url ?? '');
      if (this.answer?.(req, res)) return;
      const document =
        req.url === '/.well-known/openid-configuration'
          ? { issuer: this.url, jwks_uri: `${this.url}/keys` }
          : req.url === '/keys'
            ? { keys: this.keys }
            : null;
      res.writeHead(document ? 200 : 404, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify(document));
    });
  }

  static async start(algorithm: Algorithm = 'ES256'): Promise<StandInIssuer> {
    const issuer = new StandInIssuer();
    await issuer.listen();
    await issuer.rotate(algorithm);
    return issuer;
  }

  /** On the same port as before, if it has listened before. */
  async listen(port = 0): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
  }

  /** @returns its port. */
  async stop(): Promise<number> {
    const { port } = this.#server.address() as AddressInfo;
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    return port;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Signs with a new key from now on, and publishes it beside the others. */
  async rotate(algorithm: Algorithm = 'ES256'): Promise<void> {
    this.key = await signingKey(algorithm);
    this.keys.push(this.key.jwk);
  }

  /** @param claims replace the usual ones; undefined ones are left out. @param nowMs the time of the daemon's clock. */
  jwt(claims: Record<string, unknown>, nowMs: number, header: object = {}): Promise<string> {
    const now = Math.floor(nowMs / 1000);
    const usual = { iss: this.url, aud: 'llmp', jti: randomUUID(), iat: now, nbf: now, exp: now + 300 };
    return signed({ ...usual, ...claims }, this.key, header);
  }
}
