/** Finding the token of a secret, or of what is shown of one. */
import { ApiError, type ManagementClient } from './client.js';
import type { WireToken } from './contract.js';
import { MAX_PAGE_SIZE } from './vocabulary.js';

const SECRET = /^sk-wt-[0-9A-Za-z]{20,}$/;
// As on the screen, or as it is read out or typed without an ellipsis.
const SHOWN = /^sk-wt-([0-9A-Za-z]{4})(?:…|\.{2,3})([0-9A-Za-z]{4})$/i;

/** Whether a text is the secret of a token, and nothing else. */
export const isSecret = (text: string): boolean => SECRET.test(text);

/** The last word of a text that is a secret, or what is shown of one. */
export const secretWordIn = (text: string): string | undefined =>
  text.split(/\s+/).findLast((word) => isSecret(word) || shownSecret(word) !== null);

/** What lists show of a secret, such as `sk-wt-4esc…Jgwc`, as the daemon writes it; null for another text. */
export function shownSecret(text: string): string | null {
  const [, first, last] = SHOWN.exec(text) ?? [];
  return first === undefined || last === undefined ? null : `sk-wt-${first}…${last}`;
}

/** The token of a secret, or none. The secret goes into the body of a request, and into no address. */
export async function tokensOfSecret(
  client: Pick<ManagementClient, 'lookUpToken'>,
  secret: string,
  signal?: AbortSignal,
): Promise<WireToken[]> {
  try {
    return [await client.lookUpToken({ token: secret }, signal)];
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
}

/**
 * The tokens whose secrets are shown so, of which there is nearly always one: found by the records of their creation, because the list
 * of tokens cannot be searched by it. If there is none in these letter cases, as when it was read out, those in others.
 */
export async function tokensShownAs(
  client: Pick<ManagementClient, 'auditRecords' | 'token'>,
  shown: string,
  signal?: AbortSignal,
): Promise<WireToken[]> {
  // Without the prefix, which all of them have.
  const query = { q: shown.slice('sk-wt-'.length), limit: String(MAX_PAGE_SIZE) };
  const pages = await Promise.all(
    ['token.create', 'token.exchange'].map((action) => client.auditRecords({ ...query, action }, signal)),
  );
  const items = pages.flatMap((page) => page.items);
  const alike = items.filter(({ obfuscated }) => obfuscated?.toLowerCase() === shown.toLowerCase());
  const exact = alike.filter(({ obfuscated }) => obfuscated === shown);
  const ids = (exact.length > 0 ? exact : alike).flatMap(({ token_id: id }) => id ?? []);
  return Promise.all(ids.map((id) => client.token(id, signal)));
}
