/** JSON documents of issuers: small, within a few seconds, and from exactly the address that was asked for. */
import type { BoundedFetch, BoundedFetchOptions } from '../../oidc/bounded-fetch.js';

/** @throws {DocumentUnavailable} */
export type ReadDocument = (url: string) => Promise<unknown>;

/** The message says why, as the end of a sentence. */
export class DocumentUnavailable extends Error {}

export function documentsOf(options: BoundedFetchOptions, userAgent: string): ReadDocument {
  const headers = { accept: 'application/json', 'user-agent': userAgent };
  let loading: Promise<BoundedFetch> | null = null;
  return async (url) => {
    // Loaded for the first exchange: most of its memory is undici's.
    loading ??= import('../../oidc/bounded-fetch.js').then(({ boundedFetch }) => boundedFetch(options));
    const fetch = await loading;
    const response = await fetch(url, { method: 'GET', headers }).catch((error: unknown) => {
      throw new DocumentUnavailable(error instanceof Error ? error.message : 'unreachable');
    });
    if (response.status !== 200) throw new DocumentUnavailable(`it responded with status ${response.status}`);
    return response.json().catch(() => {
      throw new DocumentUnavailable('its response is not JSON');
    });
  };
}
