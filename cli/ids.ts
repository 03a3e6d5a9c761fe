/** Resolves what an operator types (a full ID, a prefix of an ID, or a project name) to the full ID of one project or token. */
import type { ManagementClient, Page } from '../daemon/api/client.js';
import { ID_PREFIX_PATTERN, MAX_PAGE_SIZE, MIN_ID_PREFIX_LENGTH, UUID_PATTERN } from '../daemon/api/vocabulary.js';
import { EXIT, Failure, quoted, usage } from '../console/failure.js';

export type Noun = 'project' | 'token';

const LARGEST = String(MAX_PAGE_SIZE);
// How many matches an error lists.
const AMBIGUOUS_SHOWN = 5;

/**
 * Checks the form of an ID before anything is sent. A project can be given by its name, because project names are unique;
 * token names are not.
 *
 * @throws {Failure} if it cannot be an ID. A pasted secret is neither repeated in the message nor sent anywhere.
 */
export function checkedId(noun: Noun, given: string): string {
  if (/sk-wt-/i.test(given)) {
    throw usage(`this is a secret, not a ${noun} ID`, {
      why: "it is now in the shell's history, where others may read it",
      advice: `Find its token with \`llmp token whois\`, and revoke it`,
    });
  }
  if (ID_PREFIX_PATTERN.test(given) || (noun === 'project' && given !== '')) return given;
  throw usage(`${quoted(given)} is not a valid ${noun} ID`, {
    advice: `Give an ID, or at least its first ${MIN_ID_PREFIX_LENGTH} characters. See: llmp ${noun} list`,
  });
}

/** @returns the full ID that `given` identifies. It asks the daemon unless `given` is a full ID. */
export async function wholeIdOf(client: ManagementClient, noun: Noun, given: string): Promise<string> {
  const beginning = given.toLowerCase();
  if (UUID_PATTERN.test(given)) return beginning;
  const isBeginning = ID_PREFIX_PATTERN.test(given);
  const found =
    noun === 'token'
      ? // The filter `q` also matches names.
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
    throw usage(`${shown(given)} matches several ${noun}s`, {
      why: found.slice(0, AMBIGUOUS_SHOWN).join(' '),
      advice: 'Give more characters of the ID',
    });
  }
  return id;
}

function notFound(noun: Noun, given: string): Failure {
  const message =
    noun === 'token' ? `no token ID starts with ${shown(given)}` : `no project has the name or ID ${shown(given)}`;
  return new Failure(EXIT.notFound, message, { code: 'not_found', advice: `See: llmp ${noun} list` });
}

const shown = (given: string) => (ID_PREFIX_PATTERN.test(given) ? given : quoted(given));

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
