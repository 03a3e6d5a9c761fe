/** From what an operator types to the full id of one project or token. */
import type { ManagementClient, Page } from '../daemon/api/client.js';
import { EXIT, Failure, quoted, usage } from './failure.js';

export type Noun = 'project' | 'token';

const SHORTEST_PREFIX = 6;
const WHOLE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
// So short a list tells an operator which one was meant.
const AMBIGUOUS_SHOWN = 5;

/**
 * What an id may look like at all, checked before anything is sent.
 *
 * @throws {Failure} when it cannot be an id. A pasted secret is not repeated, and never sent anywhere.
 */
export function checkedId(noun: Noun, given: string): string {
  if (/sk-wt-/i.test(given)) {
    throw usage(`this is a secret, not the id of a ${noun}`, {
      why: "it is in the shell's history now, so others may come to know it",
      advice: 'Find the token it belongs to with `llmp token list`, and revoke it',
    });
  }
  const id = given.toLowerCase();
  if (/^[0-9a-f][0-9a-f-]{0,35}$/.test(id) && id.length >= SHORTEST_PREFIX) return id;
  throw usage(`${quoted(given)} cannot be the id of a ${noun}`, {
    advice: `Give an id, or at least its first ${SHORTEST_PREFIX} characters; see: llmp ${noun} list`,
  });
}

/** The full id that begins with `given`, by asking the daemon unless it is a full one already. */
export async function wholeIdOf(client: ManagementClient, noun: Noun, given: string): Promise<string> {
  if (WHOLE_ID.test(given)) return given;
  const found = await idsThatBeginWith(given, (cursor) =>
    // The filter of tokens finds names as well; projects have none.
    noun === 'token'
      ? client.tokens({ q: given, limit: '1000', ...cursor })
      : client.projects({ limit: '1000', ...cursor }),
  );
  const [id, ...others] = found;
  if (id === undefined) {
    throw new Failure(EXIT.notFound, `no ${noun} has an id that begins with ${given}`, {
      code: 'not_found',
      advice: `See: llmp ${noun} list`,
    });
  }
  if (others.length > 0) {
    throw usage(`${given} is the beginning of several ids`, {
      why: found.slice(0, AMBIGUOUS_SHOWN).join(' '),
      advice: 'Give more of it',
    });
  }
  return id;
}

async function idsThatBeginWith(
  prefix: string,
  pageAfter: (cursor: { cursor?: string }) => Promise<Page<{ id: string }>>,
): Promise<string[]> {
  const found: string[] = [];
  let cursor: { cursor?: string } = {};
  for (;;) {
    const { items, next } = await pageAfter(cursor);
    found.push(...items.map(({ id }) => id).filter((id) => id.startsWith(prefix)));
    if (next === null || found.length > AMBIGUOUS_SHOWN) return found;
    cursor = { cursor: next };
  }
}
