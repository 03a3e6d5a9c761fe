/** Why no daemon answered, and what mends that. */
import type { Unreachable } from '../daemon/api/client.js';
import type { Explanation } from './explanation.js';

/** What is wrong with a certificate, by the code of OpenSSL or Node. */
const CERTIFICATE_PROBLEMS: Readonly<Record<string, readonly [why: string, advice: string]>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: ['nobody but itself vouches for it', trusting('the certificate')],
  SELF_SIGNED_CERT_IN_CHAIN: ['its authority is not known here', trusting("the authority's certificate")],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ['its authority is not known here', trusting("the authority's certificate")],
  UNABLE_TO_GET_ISSUER_CERT: ['its authority is not known here', trusting("the authority's certificate")],
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ['its authority is not known here', trusting("the authority's certificate")],
  CERT_HAS_EXPIRED: ['it has expired', 'Renew it; if it is good, the clock here is wrong'],
  CERT_NOT_YET_VALID: ['it is not valid yet', 'Set the clock here, or the one of whoever issued it'],
  CERT_REVOKED: ['it was revoked', 'Ask whoever runs the server'],
  ERR_TLS_CERT_ALTNAME_INVALID: ['it is for another name', 'Say a name with --server that is in the certificate'],
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
      message: `the daemon at ${server} does not answer`,
      why: error.message,
      advice: 'Try again, or give it longer with --timeout',
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
      advice: 'If it speaks plain HTTP, say http:// in --server or LLMP_SERVER',
      code: 'tls_failed',
    };
  }
  return {
    message: `cannot reach the daemon at ${server}`,
    why: error.message,
    advice: 'Start it with `llmp daemon`, or say where it is with --server or LLMP_SERVER',
    code: 'unreachable',
  };
}

/** fetch puts what the connection said into the cause of its error. */
function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : '';
}
