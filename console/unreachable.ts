/** Why no daemon answered, and what mends that. */
import type { Unreachable } from '../daemon/api/client.js';
import type { Explanation } from './explanation.js';

/** What is wrong with a certificate, by the code of OpenSSL or Node. */
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
  CERT_HAS_EXPIRED: ['it has expired', 'Renew it, or correct the clock of this machine'],
  CERT_NOT_YET_VALID: ['it is not valid yet', 'Correct the clock of this machine or of the server'],
  CERT_REVOKED: ['it was revoked', 'Ask the operator of the server'],
  ERR_TLS_CERT_ALTNAME_INVALID: ['it is for another name', 'Use a name from the certificate in --server'],
};

function trusting(what: string): string {
  return `If you trust it, put ${what} into a file and set NODE_EXTRA_CA_CERTS=FILE`;
}

/** Where the other side does not speak TLS, or speaks none that Node does. */
const isOfTls = (code: string) => code.startsWith('ERR_SSL_');

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
      message: `no encrypted connection to ${server}`,
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

/** fetch puts what the connection said into the cause of its error. */
function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : '';
}
