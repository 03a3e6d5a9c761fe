/** The answers that are kept. */
import type { WireCache } from '../../daemon/api/contract.js';
import { bar } from '../parts/charts.js';
import { fact } from '../parts/facts.js';
import { bytes, exact, percent } from '../parts/figures.js';
import { framed } from '../parts/frame.js';
import { type Area, key } from '../parts/list.js';
import { strip, type Strip, text } from '../parts/strip.js';
import type { State } from '../state/state.js';
import { waiting } from './tokens.js';

export function cacheScreen(state: State, area: Area): Strip[] {
  const { cache } = state.cache;
  const lines = cache ? linesOf(cache, area.columns) : [strip(waiting(state))];
  return framed([[], ...lines.map((line) => strip('  ', line))], area.columns, area.rows);
}

const NAME_COLUMNS = 8;
const BAR_COLUMNS = 40;

function linesOf({ backend, entries, bytes: size, hits, misses }: WireCache, columns: number): Strip[] {
  if (backend === 'off') {
    return [
      fact('kept in', strip(text('○ ', 'faint'), 'nothing: the cache is off'), NAME_COLUMNS),
      [],
      strip('HTTP_CACHE_ENABLED=true in the daemon’s environment turns it on.'),
    ];
  }
  const asked = hits + misses;
  const share = asked === 0 ? 0 : hits / asked;
  const width = Math.max(4, Math.min(BAR_COLUMNS, columns - 40));
  return [
    fact(
      'kept in',
      strip(text('● ', 'good'), backend === 'redis' ? 'Redis, for all instances' : 'memory, of this instance'),
      NAME_COLUMNS,
    ),
    fact('answers', strip(text(exact(entries), 'strong'), `, ${bytes(size)}`), NAME_COLUMNS),
    fact('hits', strip(bar(share, width, 'good'), `  ${percent(share)}`), NAME_COLUMNS),
    fact('', `${exact(hits)} of ${exact(asked)} requests that could be answered from it`, NAME_COLUMNS),
    [],
    strip(key('x'), ' purges: one request line, all of a project, or everything.'),
    strip('  How many answers that removes is told before anything is sent.'),
  ];
}
