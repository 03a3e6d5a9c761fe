/** The query of a list command, in the grammar of the terminal UI's filter line: `llmp token list 'project:web expires:<2h'`. */
import type { Kind } from '../config/kinds.js';
import type { ManagementClient } from '../daemon/api/client.js';
import { shownSecret } from '../daemon/api/tokens-of-secret.js';
import { type Failure, usage } from '../console/failure.js';
import { parseWhole } from '../console/query/filter.js';
import { keysOf } from '../console/query/keys.js';
import { namesIn, selectedTwice } from '../console/query/names.js';
import { quotedValue, termsOf } from '../console/query/terms.js';
import type { Filter, Filtered, FilteredScreen, FilterProblem, KnownNames } from '../console/query/types.js';
import type { Argument } from './command.js';
import { allProjects, tokensMeant, wholeIdOf } from './ids.js';

/** @param keys the keys of its terms, for help. */
export const queryArgument = (screen: FilteredScreen, example: string): Argument => ({
  name: 'QUERY',
  meaning: `words, and terms with ${wordsOf(keysOf(screen, { projects: [] }).map(({ name }) => `${name}:`))}, for example ${example}; see llmp help query`,
  required: false,
  many: true,
  completes: `query of ${screen}`,
});

function wordsOf(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1) ?? ''}`;
}

/**
 * Parses the arguments of a list command.
 *
 * @throws {Failure} that shows the place of the first problem.
 */
export async function queryIn<S extends FilteredScreen>(
  args: readonly string[],
  screen: S,
  client: ManagementClient,
): Promise<Filter<S>> {
  const written = args.join(' ');
  const line = screen === 'projects' || screen === 'top' ? written : await withTokensShown(written, client);
  const names = await knownTo(client, line);
  const filter = parseWhole(line, screen, names);
  const [problem] = filter.problems;
  if (problem) throw await failureOf(problem, line, screen, names);
  return filter;
}

/** The line with the ID of a token in place of what is shown of its secret, by which few records can be found. */
export async function withTokensShown(line: string, client: ManagementClient): Promise<string> {
  const words = termsOf(line).flatMap(({ key, parts }) => (key === null ? parts : []));
  let result = line;
  for (const { text, at, length } of words.toReversed()) {
    if (shownSecret(text) === null) continue;
    const id = await wholeIdOf(client, 'token', text);
    result = result.slice(0, at) + result.slice(at, at + length).replace(text, id) + result.slice(at + length);
  }
  return result;
}

/** The projects and tokens that the terms of a line may name. Other names are not asked for. */
async function knownTo(client: ManagementClient, line: string): Promise<KnownNames> {
  const names = namesIn(line);
  const [projects, tokens] = await Promise.all([
    names.hasProjects ? allProjects(client) : [],
    Promise.all(names.tokens.map((name) => tokensMeant(client, name))),
  ]);
  return { projects, tokens: tokens.flatMap(({ meant }) => meant) };
}

async function failureOf(
  problem: FilterProblem,
  line: string,
  screen: FilteredScreen,
  known: KnownNames,
): Promise<Failure> {
  const keys = keysOf(screen, known);
  const term = termsOf(line).find(({ at, length }) => at <= problem.at && problem.at <= at + length);
  const key = keys.find(({ name }) => name === term?.key);
  const part = term?.parts.find(({ at }) => at === problem.at);
  const [{ suggestedValue }, { placeOf }] = await Promise.all([
    import('./help/suggest.js'),
    import('../console/query/place.js'),
  ]);
  const why = key
    ? suggestedValue(
        part?.text ?? '',
        key.values.map(({ insert }) => insert),
      )
    : suggestedValue(
        term?.key ?? '',
        keys.map(({ name }) => name),
      );
  return usage(problem.message, { details: placeOf(problem, line), why, advice: 'See: llmp help query' });
}

/** The value of an option that selects as a term of the query does: `--used '>90%'` is `used:>90%`. @param sign what is before the value in a term. */
export function termKind<S extends FilteredScreen>(
  screen: S,
  key: string,
  accepts: string,
  sign = '',
): Kind<Filtered[S]['query']> {
  return {
    accepts,
    parse(given) {
      const { query, problems } = parseWhole(`${key}:${sign}${quotedValue(given)}`, screen, { projects: [] });
      return problems.length === 0 ? query : undefined;
    },
  };
}

/**
 * Merges the query of the arguments with the fields that options set.
 *
 * @throws {Failure} if both select by the same property: which one is meant is not clear.
 */
export function withOptions<Q extends object>(query: Q, options: Partial<Q>): Q {
  const twice = selectedTwice(query, options);
  if (twice !== undefined) throw usage(`${twice} in the query and as an option`, { advice: 'Use one of them' });
  return { ...query, ...options };
}
