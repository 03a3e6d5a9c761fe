/** Everything that can go wrong, with its exit code and what the operator reads about it. */
import { ApiError, Unreachable } from '../daemon/api/client.js';

export const EXIT = {
  done: 0,
  refused: 1,
  usage: 2,
  managementToken: 3,
  notFound: 4,
  conflict: 5,
  unreachable: 6,
  tooMany: 7,
  serverError: 8,
  checkFailed: 9,
  cannotListen: 69,
  crash: 70,
  interrupted: 130,
  closedPipe: 141,
} as const;

export interface Explanation {
  why?: string;
  /** What to do next. */
  advice?: string;
  /** For programs; the daemon's own where it gave one. */
  code?: string;
  requestId?: string | null;
  cause?: unknown;
}

/** An end of a command that is not success: what happened, and optionally why and what to do, one line each. */
export class Failure extends Error {
  override name = 'Failure';

  constructor(
    readonly exitCode: number,
    message: string,
    readonly explanation: Explanation = {},
  ) {
    super(message, { cause: explanation.cause });
  }
}

export function usage(message: string, explanation: Explanation = {}): Failure {
  return new Failure(EXIT.usage, message, { code: 'usage', ...explanation });
}

const LONGEST_QUOTED = 12;

/** What an operator typed in the wrong place, unless it is long enough to be a credential. */
export function quoted(given: string): string {
  return given.length <= LONGEST_QUOTED ? JSON.stringify(given) : `what was given (${given.length} characters)`;
}

/** @param server for messages; only shown when it was fit to be connected to, so it holds no credentials. */
export function failureOf(error: unknown, server: string): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof ApiError) return refused(error, server);
  if (error instanceof Unreachable) {
    return new Failure(EXIT.unreachable, `cannot reach the daemon at ${server}`, {
      why: error.message,
      advice: 'Start it with `llmp daemon`, or say where it is with --server or LLMP_SERVER',
      code: 'unreachable',
      cause: error,
    });
  }
  if (!(error instanceof Error)) return new Failure(EXIT.crash, String(error), { code: 'crash' });
  // inquirer's way to say that ^C was pressed in a prompt.
  if (error.name === 'ExitPromptError') return new Failure(EXIT.interrupted, 'interrupted', { code: 'interrupted' });
  // What daemon/ops throws says itself how to exit, in words for the operator.
  if ('exitCode' in error && typeof error.exitCode === 'number') {
    return new Failure(error.exitCode, error.message, { code: 'failed', cause: error });
  }
  return new Failure(EXIT.crash, `this is a defect of llmp: ${error.message}`, {
    advice: 'Run it again with -v and report what it prints',
    code: 'crash',
    cause: error,
  });
}

function refused(error: ApiError, server: string): Failure {
  const explanation = { ...hint(error, server), code: error.code, requestId: error.requestId, cause: error };
  const message = error.status === 401 ? `the daemon at ${server} refused the management token` : error.message;
  return new Failure(exitCodeOf(error), message, explanation);
}

function exitCodeOf({ status, code }: ApiError): number {
  if (status === 401) return EXIT.managementToken;
  if (status === 404) return EXIT.notFound;
  if (status === 405 || status === 409 || code === 'project_inactive') return EXIT.conflict;
  if (status === 429) return EXIT.tooMany;
  return status >= 500 ? EXIT.serverError : EXIT.refused;
}

function hint(error: ApiError, server: string): Explanation {
  if (error.status === 401) {
    return {
      why: 'it must equal the MANAGEMENT_TOKEN that the daemon was started with, to the byte',
      advice: 'Check MANAGEMENT_TOKEN, MANAGEMENT_TOKEN_FILE or --management-token-file',
    };
  }
  if (error.code === 'project_inactive') return { advice: 'Activate it first: llmp project activate ID' };
  if (error.status === 429 || error.status >= 500) {
    const wait = error.retryAfterSeconds === null ? 'later' : `in ${error.retryAfterSeconds} s`;
    return { why: `the daemon at ${server} answered ${error.status}`, advice: `Try again ${wait}` };
  }
  return {};
}
