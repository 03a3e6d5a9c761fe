/** `If-Match` (RFC 9110, 13.1.1): a change of what the client has seen, and of nothing else. */
import { createHash } from 'node:crypto';
import type * as z from 'zod';
import { Refusal } from '../../core/refusal.js';
import { type Core, wired } from './wire.js';

// 132 bits. The rest of the tag is for `If-None-Match`.
const VERSION_LENGTH = 22;
const TAG_LENGTH = VERSION_LENGTH + 43;

/**
 * First part of the ETag of a response: a digest of the stored values that changes depend on. Counts and times of use are left out,
 * because under traffic they change between any two requests, and a conditional change would always fail.
 */
export const versionOf = (values: object): string => digestOf(values).slice(0, VERSION_LENGTH);

export const digestOf = (values: unknown): string =>
  createHash('sha256').update(JSON.stringify(values)).digest('base64url');

/** The opaque tags of `If-Match`; null for a star, which matches everything that exists. Weak tags never match, so they are left out. */
function tagsIn(header: string): string[] | null {
  if (header.trim() === '*') return null;
  const tags: string[] = [];
  const element = /[ \t]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)")?[ \t]*(?:,|$)/y;
  while (element.lastIndex < header.length) {
    const found = element.exec(header);
    if (!found) throw new Refusal('invalid_request', 'If-Match must be a list of ETags in double quotes, or *');
    const [, weak, tag] = found;
    if (tag !== undefined && weak === undefined) tags.push(tag);
  }
  return tags;
}

/**
 * Returns the check that a change makes in its transaction, with the state that it begins with. The check throws a refusal
 * (`precondition_failed`).
 *
 * @param header `If-Match` as the client sent it.
 * @throws {Refusal} `invalid_request` for a header that is not a list of ETags.
 */
export function matchCheck<Version extends z.ZodObject>(
  version: Version,
  header: string | undefined,
): (before: Core<z.output<Version>>) => void {
  const tags = header === undefined ? null : tagsIn(header);
  if (tags === null) return () => undefined;
  const valuesOf = wired(version);
  return (before) => {
    const current = versionOf(valuesOf(before));
    if (tags.some((tag) => tag.length === TAG_LENGTH && tag.startsWith(current))) return;
    throw new Refusal('precondition_failed', 'the resource was changed after the ETag in If-Match had been sent');
  };
}
