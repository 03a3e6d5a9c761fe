/** From what an operator types to the full id of one project or token. */
import type { ManagementClient, Page } from '../daemon/api/client.js';
import { BEGINNING_OF_ID, MAX_PAGE_SIZE, SHORTEST_ID_PREFIX, WHOLE_ID } from '../daemon/api/vocabulary.js';
import { EXIT, Failure, quoted, usage } from '../console/failure.js';

export type Noun = 'project' | 'token';

const LARGEST = String(MAX_PAGE_SIZE);
// So short a list tells an operator which one was meant.
const AMBIGUOUS_SHOWN = 5;

/**
 * What may stand for a token or a project at all, checked before anything is sent. Names of projects are unique, so
 * one may stand for its project; those of tokens are not.
 *
 * @throws {Failure} when it cannot be an id. A pasted secret is not repeated, and never sent anywhere.
 */
export function checkedId(noun: Noun, given: string): string {
  if (/sk-wt-/i.test(given)) {
    throw usage(`this is a secret, not the id of a ${noun}`, {
      why: "it is in the shell's history now, so others may come to know it",
      advice: `Find the token it belongs to with \`llmp token whois\`, and revoke it`,
    });
  }
  if (BEGINNING_OF_ID.test(given) || (noun === 'project' && given !== '')) return given;
  throw usage(`${quoted(given)} cannot be the id of a ${noun}`, {
    advice: `Give an id, or at least its first ${SHORTEST_ID_PREFIX} characters; see: llmp ${noun} list`,
  });
}

/** The full id that `given` stands for, by asking the daemon unless it is a full one already. */
export async function wholeIdOf(client: ManagementClient, noun: Noun, given: string): Promise<string> {
  const beginning = given.toLowerCase();
  if (WHOLE_ID.test(given)) return beginning;
  const isBeginning = BEGINNING_OF_ID.test(given);
  const found =
    noun === 'token'
      ? // The filter finds names as well.
        await idsOf(
          (cursor) => client.tokens({ q: beginning, limit: LARGEST, ...cursor }),
          ({ id }) => id.startsWith(beginning),
        )
      : await idsOf(
          (cursor) => client.projects({ limit: LARGEST, ...cursor }),
          ({ id, name }) => name === given || (isBeginning && id.startsWith(beginning)),
        );
  const [id, ...others] = found;
  if (id === undefined) throw notFound(noun, given);
  if (others.length > 0) {
    throw usage(`${shown(given)} stands for several ${noun}s`, {
      why: found.slice(0, AMBIGUOUS_SHOWN).join(' '),
      advice: 'Give more of the id',
    });
  }
  return id;
}

function notFound(noun: Noun, given: string): Failure {
  const is =
    noun === 'token' ? 'is not the beginning of the id of a token' : 'is neither the name nor the id of a project';
  return new Failure(EXIT.notFound, `${shown(given)} ${is}`, { code: 'not_found', advice: `See: llmp ${noun} list` });
}

const shown = (given: string) => (BEGINNING_OF_ID.test(given) ? given : quoted(given));

async function idsOf<T extends { id: string }>(
  pageAfter: (cursor: { cursor?: string }) => Promise<Page<T>>,
  isMeant: (item: T) => boolean,
): Promise<string[]> {
  const found: string[] = [];
  let cursor: { cursor?: string } = {};
  for (;;) {
    const { items, next } = await pageAfter(cursor);
    found.push(...items.filter(isMeant).map(({ id }) => id));
    if (next === null || found.length > AMBIGUOUS_SHOWN) return found;
    cursor = { cursor: next };
  }
}
