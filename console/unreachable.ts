/** Explains why a daemon could not be reached, and how to fix it. */
import type { Unreachable } from '../daemon/api/client.js';
import type { Explanation } from './explanation.js';

/** Certificate problems by the error code of OpenSSL or Node. */
const CERTIFICATE_PROBLEMS: Readonly<Record<string, readonly [why: string, advice: string]>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: ['the certificate is self-signed', trusting('the certificate')],
  SELF_SIGNED_CERT_IN_CHAIN: [
    'its certificate authority is not trusted on this machine',
    trusting("the authority's certificate"),
  ],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: [
    'its certificate authority is not trusted on this machine',
    trusting("the authority's certificate"),
  ],
  UNABLE_TO_GET_ISSUER_CERT: [
    'its certificate authority is not trusted on this machine',
    trusting("the authority's certificate"),
  ],
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: [
    'its certificate authority is not trusted on this machine',
    trusting("the authority's certificate"),
  ],
  CERT_HAS_EXPIRED: ['the certificate has expired', 'Renew it, or correct the clock of this machine'],
  CERT_NOT_YET_VALID: ['the certificate is not valid yet', 'Correct the clock of this machine or of the server'],
  CERT_REVOKED: ['the certificate was revoked', 'Contact the operator of the server'],
  ERR_TLS_CERT_ALTNAME_INVALID: ['the certificate is for another name', 'Use a name from the certificate in --server'],
};

function trusting(what: string): string {
  return `If you trust it, put ${what} into a file and set NODE_EXTRA_CA_CERTS=FILE`;
}

/** The server does not use TLS, or no version that Node supports. node:http reports EPROTO, fetch a code of OpenSSL. */
const isOfTls = (code: string) => code === 'EPROTO' || code.startsWith('ERR_SSL_');

export function whyUnreachable(error: Unreachable, server: string): Explanation & { message: string } {
  const { cause } = error;
  if (cause instanceof Error && cause.name === 'TimeoutError') {
    return {
      message: `the daemon at ${server} does not respond`,
      why: error.message,
      advice: 'Try again, or raise --timeout',
      code: 'no_answer_in_time',
    };
  }
  const code = codeOf(cause);
  const certificate = CERTIFICATE_PROBLEMS[code];
  if (certificate) {
    const [why, advice] = certificate;
    return {
      message: `the certificate of ${server} is not trusted`,
      why: `${why} (${code})`,
      advice,
      code: 'certificate_not_trusted',
    };
  }
  if (isOfTls(code)) {
    return {
      message: `cannot establish an encrypted connection to ${server}`,
      why: code,
      advice: 'If the daemon uses plain HTTP, use http:// in --server or LLMP_SERVER',
      code: 'tls_failed',
    };
  }
  return {
    message: `cannot reach the daemon at ${server}`,
    why: error.message,
    advice: 'Is it running? Start it with `llmp daemon`, or set its address with --server or LLMP_SERVER',
    code: 'unreachable',
  };
}

/** fetch stores the error of the connection in the cause of its own error. */
function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : '';
}
