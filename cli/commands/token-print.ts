/** `llmp token print`: a token for a tool that asks for one again and again, such as `apiKeyHelper` of Claude Code. */
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import { ApiError } from '../../daemon/api/client.js';
import { isRetryable } from '../../daemon/api/follow-stream.js';
import { EXIT, Failure, failureOf } from '../../console/failure.js';
import type { View } from '../../console/table.js';
import { shortId } from '../../console/columns/cell-text.js';
import { command, type Invocation } from '../command.js';
import { connectionTo } from '../connection/connection.js';
import { tokenSelf } from '../connection/probes.js';
import { DEFAULT_TIMEOUT_MS } from '../globals.js';
import { type CachedToken, TokenFile, tokenFolder } from '../token-cache.js';
import { issuingOptions, tokenWanted } from './issuing.js';

const options = issuingOptions(1, 'name of the tokens (default: token print)');

/** A token is replaced after this share of its lifetime. */
const REPLACED_AFTER = 0.8;
const LOOK_EVERY_MS = 50;
/** A daemon that does not respond must not delay a program that needs its key. */
const CHECK_TIMEOUT_MS = 2_000;

export const print = command({
  path: ['manage', 'token', 'print'],
  summary: 'print a token that is reused until 80 % of its lifetime, for programs that ask for a key repeatedly',
  examples: [
    ['token print --project-id web --duration 1h', 'print the secret of a token for one hour, or of the last one'],
    ['token print --project-id web -o json', 'print it as JSON, with its ID and its expiry'],
  ],
  options,
  prints: () => printedView.fields,
  async run(invocation) {
    const { options: given, output, shell, globals, destination } = invocation;
    const { server, context } = destination();
    const { projectId: project = shell.env.LLMP_PROJECT_ID || context?.projectId, ...others } = given;
    // The next person who logs in must not get the token of the one before.
    const whose = [server, context?.name, context?.sessionId];
    const terms = [...whose, project, JSON.stringify(Object.entries(others).sort())];
    const file = new TokenFile(tokenFolder(shell.env), terms, shell.now.bind(shell));
    const { id, token, expires_at } = await currentToken(file, globals.timeout ?? DEFAULT_TIMEOUT_MS, invocation);
    // Programs read the first line as the key.
    if (output.format === 'table') output.text(token);
    else await output.one({ id, token, expires_at }, printedView);
    return EXIT.done;
  },
});

type Printing = Invocation<typeof options>;

async function currentToken(file: TokenFile, timeoutMs: number, invocation: Printing): Promise<CachedToken> {
  const { shell } = invocation;
  const signal = new AbortController().signal;
  const untilMs = shell.now() + timeoutMs;
  for (;;) {
    const cached = await file.read();
    const isCurrent = cached !== null && isFresh(cached, shell.now());
    if (isCurrent && (await isAccepted(cached, invocation))) return cached;
    // Each of the requests that an issue consists of may take the timeout.
    const unlock = file.lock(4 * timeoutMs);
    if (unlock) {
      try {
        return await replaced(file, cached, invocation);
      } finally {
        unlock();
      }
    }
    // Another process is replacing it.
    if (cached && !isCurrent) return cached;
    if (shell.now() >= untilMs) throw noToken();
    await shell.pause(LOOK_EVERY_MS, signal);
  }
}

const isFresh = ({ issuedAtMs, expiresAtMs }: CachedToken, nowMs: number): boolean =>
  nowMs >= issuedAtMs && nowMs < issuedAtMs + REPLACED_AFTER * (expiresAtMs - issuedAtMs);

const noToken = () =>
  new Failure(EXIT.refused, 'another llmp has not finished issuing a token', {
    code: 'token_not_issued',
    advice: 'Try again',
  });

/** Whether the daemon does not say that the token is revoked, or that its cap is used up: a program asks for a key again after an error. */
async function isAccepted({ token }: CachedToken, invocation: Printing): Promise<boolean> {
  try {
    const { state } = await tokenSelf({ ...connectionTo(invocation), timeoutMs: CHECK_TIMEOUT_MS }, token);
    return state === 'active';
  } catch (error) {
    return !(error instanceof ApiError && error.status === 401);
  }
}

/** Issues a token, with the lock. Uses the last one if the daemon does not respond. @param old the one to replace. */
async function replaced(file: TokenFile, old: CachedToken | null, invocation: Printing): Promise<CachedToken> {
  const { output, shell, server } = invocation;
  // Another process may have replaced it before this one got the lock.
  const cached = await file.read();
  if (cached && cached.id !== old?.id && isFresh(cached, shell.now())) return cached;
  let issued: WireTokenCreated;
  try {
    issued = await issue(invocation);
  } catch (error) {
    if (!cached || !isRetryable(error)) throw error;
    output.warn(`${failureOf(error, server).message}; using the last token, until ${cached.expires_at}`);
    return cached;
  }
  const token = asCached(issued, shell.now());
  try {
    file.write(token);
  } catch (error) {
    output.warn(`cannot save the token: ${(error as NodeJS.ErrnoException).code ?? 'failed'}`);
    output.secretOf(() => issued.id); // It cannot be printed again.
  }
  output.trace(`issued ${issued.id} until ${issued.expires_at}`);
  return token;
}

async function issue(invocation: Printing): Promise<WireTokenCreated> {
  const defaults = { duration: { duration_hours: 1 }, name: 'token print' };
  const { client, body } = await tokenWanted({ ...invocation, options: { ...defaults, ...invocation.options } });
  return client.createToken(body);
}

/** The lifetime counts from now by the clock of this machine, which may differ from the daemon's. */
function asCached(
  { id, token, created_at: created, expires_at: expiry }: WireTokenCreated,
  nowMs: number,
): CachedToken {
  const lifetimeMs = Date.parse(expiry) - Date.parse(created);
  return { id, token, issuedAtMs: nowMs, expiresAtMs: nowMs + lifetimeMs, expires_at: expiry };
}

const printedView: View<Pick<CachedToken, 'id' | 'token' | 'expires_at'>> = {
  idOf: ({ id }) => id,
  fields: ['id', 'token', 'expires_at'],
  columns: [{ title: 'ID', rank: 0, show: ({ id }) => shortId(id) }],
};
