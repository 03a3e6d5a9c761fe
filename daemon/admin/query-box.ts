/** The query box of a list, in the grammar of the command line (console/query/): `project:web expires:<2h !old`. */
import { parseWhole } from '../../console/query/filter.js';
import { namesIn, selectedTwice } from '../../console/query/names.js';
import type { Filter, Filtered, FilteredScreen, FilterProblem } from '../../console/query/types.js';
import type { ManagementClient } from '../api/client.js';
import type { WireProject, WireToken } from '../api/contract.js';
import type { Permission } from '../api/permissions.js';
import { secretWordIn, shownSecret, tokensOfSecret, tokensShownAs } from '../api/tokens-of-secret.js';
import { isSameName, MAX_PAGE_SIZE, plainName } from '../api/vocabulary.js';
import { attempt, invalidRequest, post, type Route } from './page-request.js';
import { FORM_TOKEN } from './parts/frame.js';
import { MAX_LINE_LENGTH } from './parts/query-box.js';
import { Problem } from './problem.js';

export interface Box<S extends FilteredScreen> extends Pick<Filter<S>, 'query' | 'matches'> {
  screen: S;
  line: string;
  /** What is wrong with the line, and where. */
  problem: FilterProblem | null;
}

/** Reads the box from the query of a page. What its terms name is looked up. */
export async function boxOf<S extends FilteredScreen>(
  client: ManagementClient,
  query: URLSearchParams,
  screen: S,
  projects: readonly WireProject[],
): Promise<Box<S>> {
  const given = (query.get('q') ?? '').trim();
  const line = given.slice(0, MAX_LINE_LENGTH);
  const named = await Promise.all(namesIn(line).tokens.map((name) => tokensNamed(client, name)));
  const filter = parseWhole(line, screen, { projects, tokens: named.flat() });
  const tooLong = { at: line.length, length: 1, message: `a query has up to ${MAX_LINE_LENGTH} characters` };
  const problem = given.length > line.length ? tooLong : (filter.problems[0] ?? null);
  return { ...filter, screen, line, problem };
}

async function tokensNamed(client: ManagementClient, given: string): Promise<WireToken[]> {
  const query = { q: plainName(given), limit: String(MAX_PAGE_SIZE) };
  // What cannot be a name is the name of no token.
  const { value: found } = await attempt<WireToken[]>(async () => (await client.tokens(query)).items, []);
  return found.filter(({ id, name }) => isSameName(name, given) || id.startsWith(given.toLowerCase()));
}

/**
 * The query of the API for the box and the fields beside it.
 *
 * @throws {ApiError} if the line has a problem, or both select by the same property.
 */
export function combined<S extends FilteredScreen, F extends object>(
  { query, problem }: Box<S>,
  fields: F,
): Filtered[S]['query'] & F {
  if (problem !== null) throw invalidRequest(problem.message);
  const twice = selectedTwice(query, fields);
  if (twice !== undefined) throw invalidRequest(`${twice} in the query and in a field: use one of them`);
  return { ...query, ...fields };
}

const UNKNOWN = 'unknown';

/** The message of a page after a secret was entered that no token has. It is gone when the list is filtered or sorted. */
export const unknownSecret = (query: URLSearchParams): string | null =>
  query.get(UNKNOWN) === 'secret' && query.size === 1 ? 'No token has this secret.' : null;

/**
 * Takes the form of a page with a query box, and redirects to the page. The form is sent with POST, so that a secret that is entered in
 * its box gets into no address: the page shows the token of the secret instead. So does what is shown of a secret.
 *
 * @param found where to look at that token.
 */
export const boxRoute = (page: string, permission: Permission, found: (token: WireToken) => string): Route =>
  post(`/${page}`, permission, async (request) => {
    const { client, form } = request;
    const fields = [...form].filter(([name, value]) => name !== FORM_TOKEN && value.trim() !== '');
    const word = secretWordIn(form.get('q') ?? '');
    if (word !== undefined) {
      const shown = shownSecret(word);
      const [token, ...others] = await (shown === null ? tokensOfSecret(client, word) : tokensShownAs(client, shown));
      if (!token) return { to: `${page}?${UNKNOWN}=secret` };
      return { to: others.length > 0 ? `tokens?q=${encodeURIComponent(shown ?? '')}` : found(token) };
    }
    if (fields.flat().some((text) => request.isSecret(text))) throw new Problem(400, 'This was a secret', KEY_SENT);
    const query = new URLSearchParams(fields).toString();
    return { to: query === '' ? page : `${page}?${query}` };
  });

const KEY_SENT =
  'What was entered is a key, not the secret of a token, so nothing was searched for. It is in no address, and in no log of llmp.';
