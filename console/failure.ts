/** Failures of commands: exit codes, messages, and the conversion of errors to them. */
import { ApiError, Unreachable } from '../daemon/api/client.js';
import { EXIT } from '../daemon/api/vocabulary.js';

/** The details of a failure besides its message. */
export interface Explanation {
  /** Shown below the message as they are, such as the place of an error in a text. */
  details?: readonly string[];
  why?: string;
  /** What to do next. */
  advice?: string;
  /** An error code for programs; the daemon's code if it sent one. */
  code?: string;
  requestId?: string | null;
  cause?: unknown;
}

export { EXIT };

/** @param ending the aborted signal of `untilInterrupted`. @returns the exit code for the process signal that aborted it, as in shells. */
export function endedBy({ reason }: AbortSignal): number {
  if (reason === 'SIGTERM') return EXIT.terminated;
  return reason === 'SIGHUP' ? EXIT.hangUp : EXIT.interrupted;
}

/** The meanings of exit codes for the documentation. */
export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: 'Success, also if there was nothing to do.',
  refused: 'The API refused the request, part of a batch failed, or `--jq` or `--template` does not fit the data.',
  usage: 'Usage error: invalid command line, or a confirmation was needed without a terminal (use `--yes`).',
  managementToken: 'The management token is missing or wrong, or the session has ended.',
  notFound: 'Not found. Also: `migrate copy`, `backup` or `restore` was refused before it changed anything.',
  conflict:
    'Conflict: an inactive project, a name that is taken, a change that somebody else made meanwhile, or a newer schema.',
  unreachable: 'The daemon is unreachable.',
  tooMany: 'The daemon responded with 429: too many requests.',
  serverError: 'The daemon responded with 5xx: an internal error, or a dependency is unavailable.',
  checkFailed:
    'A check failed, for example in `status`, `doctor`, `migrate status --exit-code`, `config validate`, `audit verify` or `self --warn`.',
  unavailable: 'Daemon and dispatcher: the address is in use, or a dependency is unavailable.',
  crash: 'A bug in llmp.',
  permission: 'Daemon and dispatcher: permission denied for a file.',
  configuration: 'Daemon and dispatcher: a setting is wrong, or another daemon uses the database.',
  notExecutable: 'The command of `run` cannot be executed.',
  noSuchCommand: 'The command of `run` was not found.',
  hangUp: 'The terminal was closed (SIGHUP).',
  interrupted: 'Interrupted by ^C (SIGINT).',
  closedPipe: 'The reader closed the output pipe (SIGPIPE).',
  terminated: 'Ended by SIGTERM.',
};

/** The failure of a command: what happened and, optionally, why and what to do, in one line each. */
export class Failure extends Error {
  readonly exitCode: number;
  readonly explanation: Explanation;
  override name = 'Failure';

  constructor(exitCode: number, message: string, explanation: Explanation = {}) {
    super(message, { cause: explanation.cause });
    this.exitCode = exitCode;
    this.explanation = explanation;
  }

  /** What happened, and why. */
  get sentence(): string {
    const { why } = this.explanation;
    return why === undefined ? this.message : `${this.message}: ${why}`;
  }
}

export function usage(message: string, explanation: Explanation = {}): Failure {
  return new Failure(EXIT.usage, message, { code: 'usage', ...explanation });
}

const LONGEST_QUOTED = 12;

/** Quotes a wrong value, unless it is long enough to be a credential. */
export function quoted(given: string): string {
  return given.length <= LONGEST_QUOTED ? JSON.stringify(given) : `the given value (${given.length} characters)`;
}

/** @param server the address for messages. It is shown only if a connection was attempted, so it contains no credentials. */
export function failureOf(error: unknown, server: string): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof ApiError) return refused(error, server);
  if (error instanceof Unreachable) {
    const { message, ...explanation } = whyUnreachable(error, server);
    return new Failure(EXIT.unreachable, message, { ...explanation, cause: error });
  }
  if (!(error instanceof Error)) return new Failure(EXIT.crash, String(error), { code: 'crash' });
  // Inquirer throws this error if ^C is pressed in a prompt.
  if (error.name === 'ExitPromptError') return new Failure(EXIT.interrupted, 'interrupted', { code: 'interrupted' });
  // Errors of daemon/ops contain their exit code and a message for the operator.
  if ('exitCode' in error && typeof error.exitCode === 'number') {
    return new Failure(error.exitCode, error.message, { code: 'failed', cause: error });
  }
  return new Failure(EXIT.crash, `this is a bug in llmp: ${error.message}`, {
    advice: 'Run it again with -v and report what it prints',
    code: 'crash',
    cause: error,
  });
}

function refused(error: ApiError, server: string): Failure {
  const explanation = { ...hint(error, server), code: error.code, requestId: error.requestId, cause: error };
  return new Failure(exitCodeOf(error), messageOf(error, server), explanation);
}

function messageOf({ status, code, message }: ApiError, server: string): string {
  if (code === 'session_ended') return `the session at ${server} has ended`;
  return status === 401 ? `the daemon at ${server} refused the management token` : message;
}

function exitCodeOf({ status, code }: ApiError): number {
  if (status === 401) return EXIT.managementToken;
  if (status === 404) return EXIT.notFound;
  if ([405, 409, 412].includes(status) || code === 'project_inactive') return EXIT.conflict;
  if (status === 429) return EXIT.tooMany;
  return status >= 500 ? EXIT.serverError : EXIT.refused;
}

/** What to do, by the code of an error. */
const ADVICE: Readonly<Record<string, Explanation>> = {
  project_inactive: { advice: 'Activate it first: llmp project activate ID' },
  key_required: { advice: 'Give the key of the new provider: llmp project update PROJECT … --key-file FILE' },
  key_refused: { advice: 'Store it without a check: --no-check' },
  key_not_checked: { advice: 'Store it without a check: --no-check' },
  session_ended: {
    why: 'it was ended, its time is over, or what its user may do was changed',
    advice: 'Log in again: llmp login',
  },
  not_permitted: { advice: 'See your role: llmp whoami. The holder of the management token can change it' },
  beyond_ceiling: { advice: 'Ask for less. Your ceilings: llmp whoami' },
  no_trust: { advice: 'The issuer, the audience and all claims must match a trust exactly: llmp trust list' },
  ambiguous_trust: { advice: 'Change the trusts so that only one of them matches: llmp trust list' },
  token_used: { advice: 'A JWT can be exchanged once: ask its issuer for another' },
  invalid_grant: { advice: 'Ask the issuer for a new JWT, and check its audience: llmp trust list' },
  trust_limit_reached: {
    advice:
      'End tokens that are not needed, or raise the limit: llmp trust update ID --max-active COUNT --per-hour COUNT',
  },
};

function hint(error: ApiError, server: string): Explanation {
  const known = Object.hasOwn(ADVICE, error.code) ? ADVICE[error.code] : undefined;
  if (known) return known;
  if (error.status === 401) {
    return {
      why: "it must be the daemon's MANAGEMENT_TOKEN, or the secret of an active operator or session",
      advice: 'Check MANAGEMENT_TOKEN, MANAGEMENT_TOKEN_FILE or --management-token-file',
    };
  }
  if (error.status === 429 || error.status >= 500) {
    const wait = error.retryAfterSeconds === null ? 'later' : `in ${error.retryAfterSeconds} s`;
    return { why: `the daemon at ${server} responded with ${error.status}`, advice: `Try again ${wait}` };
  }
  return {};
}

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

/** Why a daemon could not be reached, and how to fix it. */
function whyUnreachable(error: Unreachable, server: string): Explanation & { message: string } {
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

/** The sentence of a failure. @throws other errors. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Failure)) throw error;
  return error.sentence;
}
