/** HTTP requests to identity providers: what they may send is bounded in size and time, and redirects are not followed. */
import { Agent, ProxyAgent, request } from 'undici';
import { isMetadataHost } from '../../config/metadata-addresses.js';
import { isEncryptedOrLocal, isReachedDirectly } from '../../config/urls.js';
import type { Clock } from '../core/ports.js';

const TIMEOUT_MS = 5_000;
const MAX_CONNECTIONS = 16;
const MAX_BYTES = 512 * 1024;

/** The provider did not respond, or not in a usable way. The message says why, and quotes nothing of its response. */
export class ProviderUnreachable extends Error {
  override name = 'ProviderUnreachable';
}

export interface BoundedRequest {
  method: string;
  headers: Record<string, string>;
  body?: string | undefined;
}

/** Like `fetch`. @throws {ProviderUnreachable} */
export type BoundedFetch = (url: string, request: BoundedRequest) => Promise<Response>;

export interface BoundedFetchOptions {
  /** For the time limit of a request, up to the end of its response. */
  clock: Pick<Clock, 'after'>;
  /** UPSTREAM_PROXY and UPSTREAM_PROXY_BYPASS. */
  proxy: URL | undefined;
  proxyBypass: readonly string[] | undefined;
}

export function boundedFetch({ clock, proxy, proxyBypass = [] }: BoundedFetchOptions): BoundedFetch {
  const tls = { timeout: TIMEOUT_MS, rejectUnauthorized: true };
  const options = {
    connections: MAX_CONNECTIONS,
    pipelining: 0, // No connection stays open, which would have to be closed when the daemon stops.
    // The timer below is the exact limit.
    headersTimeout: 2 * TIMEOUT_MS,
    bodyTimeout: 2 * TIMEOUT_MS,
  };
  const directly = new Agent({ ...options, connect: tls });
  const throughProxy = proxy && new ProxyAgent({ ...options, uri: proxy.href, requestTls: tls, proxyTls: tls });
  return async (url, { method, headers, body }) => {
    const target = new URL(url);
    if (!isEncryptedOrLocal(target) || isMetadataHost(target.hostname)) {
      throw new ProviderUnreachable(`it names an address that is not https: ${target.origin}`);
    }
    const late = new AbortController();
    const cancel = clock.after(TIMEOUT_MS, () => {
      late.abort();
    });
    try {
      const response = await request(target, {
        method,
        headers,
        body: body ?? null,
        dispatcher: throughProxy && !isReachedDirectly(target, proxyBypass) ? throughProxy : directly,
        signal: late.signal,
      });
      const bytes = await readLimited(response.body);
      return responseOf(response.statusCode, response.headers['content-type'], bytes);
    } catch (error) {
      if (error instanceof ProviderUnreachable) throw error;
      const why = late.signal.aborted ? `no response within ${TIMEOUT_MS / 1000} s` : `unreachable${codeOf(error)}`;
      throw new ProviderUnreachable(why);
    } finally {
      cancel();
    }
  };
}

async function readLimited(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > MAX_BYTES) throw new ProviderUnreachable(`its response is larger than ${MAX_BYTES / 1024} KiB`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function responseOf(status: number, type: string | string[] | undefined, bytes: Buffer): Response {
  if (status < 200 || status > 599) throw new ProviderUnreachable(`status ${status}`);
  const headers = new Headers(typeof type === 'string' ? { 'content-type': type } : {});
  return new Response([204, 205, 304].includes(status) ? null : new Uint8Array(bytes), { status, headers });
}

/** ` (ECONNREFUSED)`, or nothing. The message of the error is left out, because it may quote the provider. */
function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : '';
}
