/** Lets people name a token in a filter, where the API wants an ID. */
import type { ManagementClient } from '../api/client.js';
import { isSameName, UUID_PATTERN } from '../api/vocabulary.js';
import { invalidRequest } from './page-request.js';

/**
 * @param filter may have a `token_id` that is a name, a part of one, or the beginning of an ID.
 * @returns the filter with the ID of that token. @throws {ApiError} if no token matches, or several do.
 */
export async function withTokenId<T extends Record<string, string>>(client: ManagementClient, filter: T): Promise<T> {
  const { token_id: given } = filter;
  if (given === undefined || UUID_PATTERN.test(given)) return filter;
  const { items, next } = await client.tokens({ q: given });
  const named = items.filter(({ name }) => isSameName(name, given));
  const [token, ...others] = named.length > 0 ? named : items;
  if (!token) throw invalidRequest('no token has this name or ID');
  if (others.length > 0 || next !== null) {
    throw invalidRequest('several tokens match this name or ID: enter the whole name, or more of the ID');
  }
  return { ...filter, token_id: token.id };
}
