/** Reads JWTs and verifies their signatures, with jose. */
import { decodeJwt, decodeProtectedHeader, jwtVerify, type JWTPayload, type ProtectedHeaderParameters } from 'jose';
import { CLOCK_TOLERANCE_S, type JwtReader, type KeySource, type PresentedJwt } from '../../core/exchanges.js';
import type { Clock } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import type { IssuerKeys } from './issuer-keys.js';

/** Asymmetric ones only: with HS256, anyone who knows the public key could sign. */
const ALGORITHMS = ['RS256', 'ES256', 'EdDSA'];
/** The JWTs of most issuers have 1 to 2 KiB. */
const MAX_LENGTH = 16 * 1024;
const SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** What the issuer of a trust can be. Other texts are not looked up: PostgreSQL fails for some. */
const ISSUER = /^[^\p{C}\p{Z}]{1,500}$/u;
/** Longer than any `kid` that issuers use. */
const MAX_KID_LENGTH = 500;

const invalid = (message: string, cause?: unknown) => new Refusal('invalid_grant', message, { cause });

export function jwtReader(keys: Pick<IssuerKeys, 'find'>, clock: Pick<Clock, 'now'>): JwtReader {
  return {
    read(text) {
      if (text.length > MAX_LENGTH) throw invalid(`the JWT is longer than ${MAX_LENGTH / 1024} KiB`);
      if (!SHAPE.test(text)) throw invalid('this is not a signed JWT');
      const { header, payload } = partsOf(text);
      checkHeader(header);
      checkTimes(payload, clock.now() / 1000);
      const { iss: issuer, exp = 0 } = payload;
      if (typeof issuer !== 'string' || !ISSUER.test(issuer)) throw invalid('the JWT has no valid issuer (iss)');
      return {
        text,
        signed: text.slice(0, text.lastIndexOf('.')),
        issuer,
        audience: audienceOf(payload),
        claims: payload,
        expiresAtMs: Math.ceil(exp * 1000),
      };
    },

    async verify(jwt: PresentedJwt, source: KeySource) {
      try {
        // The header's own keys and addresses of keys (jwk, jku, x5c, x5u) are not used: only those of the source.
        await jwtVerify(jwt.text, (header) => keys.find(source, header), {
          algorithms: ALGORITHMS,
          issuer: jwt.issuer,
          audience: jwt.audience,
          requiredClaims: ['exp'],
          clockTolerance: CLOCK_TOLERANCE_S,
          currentDate: new Date(clock.now()),
        });
      } catch (error) {
        throw error instanceof Refusal ? error : invalid('the JWT is not signed by its issuer', error);
      }
    },
  };
}

function partsOf(text: string): { header: ProtectedHeaderParameters; payload: JWTPayload } {
  try {
    return { header: decodeProtectedHeader(text), payload: decodeJwt(text) };
  } catch (error) {
    throw invalid('this is not a signed JWT', error);
  }
}

function checkHeader({ alg, kid, crit, b64 }: ProtectedHeaderParameters): void {
  if (typeof alg !== 'string' || !ALGORITHMS.includes(alg)) {
    throw invalid(`the JWT must be signed with ${ALGORITHMS.slice(0, -1).join(', ')} or ${ALGORITHMS.at(-1) ?? ''}`);
  }
  if (crit !== undefined || b64 !== undefined) throw invalid('the JWT has extensions (crit), which are not supported');
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > MAX_KID_LENGTH)) {
    throw invalid('the ID of the key (kid) of the JWT is not valid');
  }
}

/** @param now in seconds. */
function checkTimes({ exp, nbf, iat }: JWTPayload, now: number): void {
  const isTime = (value: unknown) => typeof value === 'number' && Number.isSafeInteger(Math.ceil(value * 1000));
  if (!isTime(exp)) throw invalid('the JWT has no time at which it expires (exp)');
  for (const time of [nbf, iat])
    if (time !== undefined && !isTime(time)) throw invalid('a time of the JWT is not valid');
  if ((exp ?? 0) <= now - CLOCK_TOLERANCE_S) throw invalid('the JWT has expired');
  if ((nbf ?? 0) > now + CLOCK_TOLERANCE_S) throw invalid('the JWT is not valid yet (nbf)');
  if ((iat ?? 0) > now + CLOCK_TOLERANCE_S) throw invalid('the JWT was issued in the future (iat)');
}

/** One for several services could be exchanged here by any of them. */
function audienceOf({ aud }: JWTPayload): string {
  const [audience, ...others] = Array.isArray(aud) ? aud : [aud];
  if (typeof audience === 'string' && others.length === 0) return audience;
  throw invalid('the JWT must have exactly one audience (aud)');
}
