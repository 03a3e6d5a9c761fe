/** The cache screen. */
import type { WireCache } from '../../daemon/api/contract.js';
import { keyOf } from '../keys/press.js';
import { bar } from '../parts/charts.js';
import { fact } from '../parts/columns.js';
import { bytes, exact } from '../../daemon/api/formats.js';
import { percent } from '../parts/figures.js';
import { Drawing } from '../parts/drawing.js';
import { key } from '../parts/list.js';
import { Pane } from '../parts/pane.js';
import { mayAsk, seesAllProjects } from '../state/permitted.js';
import { strip, type Strip, text } from '../parts/strip.js';
import type { State } from '../state/state.js';
import { loadingText } from './tokens.js';

export function CacheScreen({ state }: { state: State }) {
  const { cache } = state.cache;
  return (
    <Pane>
      <Drawing
        flexGrow={1}
        marginTop={1}
        marginLeft={2}
        draw={(columns) => [
          ...(cache ? linesOf(cache, columns) : [strip(withoutFigures(state))]),
          ...(cache?.backend === 'off' ? [] : purgeLines(state)),
        ]}
      />
    </Pane>
  );
}

const NAME_COLUMNS = 8;
const BAR_COLUMNS = 40;

/** What is shown in place of the figures, which are of all projects. */
const withoutFigures = (state: State): string =>
  mayAsk(state, { of: 'cache' }) ? loadingText(state) : 'What it holds is shown to those who may see all projects.';

function linesOf({ backend, entries, bytes: size, hits, misses }: WireCache, columns: number): Strip[] {
  if (backend === 'off') {
    return [
      fact('backend', strip(text('○ ', 'faint'), 'off'), NAME_COLUMNS),
      [],
      strip('To turn the cache on, set HTTP_CACHE_ENABLED=true for the daemon.'),
    ];
  }
  const asked = hits + misses;
  const share = asked === 0 ? 0 : hits / asked;
  const width = Math.max(4, Math.min(BAR_COLUMNS, columns - 36));
  return [
    fact(
      'backend',
      strip(text('● ', 'good'), backend === 'redis' ? 'Redis, shared by all instances' : 'memory of this instance'),
      NAME_COLUMNS,
    ),
    fact('entries', strip(text(exact(entries), 'strong'), `, ${bytes(size)}`), NAME_COLUMNS),
    fact('hits', strip(bar(share, width, 'good'), `  ${percent(share)}`), NAME_COLUMNS),
    fact('', `${exact(hits)} of ${exact(asked)} cacheable requests`, NAME_COLUMNS),
  ];
}

const purgeLines = (state: State): Strip[] => [
  [],
  strip(
    key(keyOf(state, 'cache.purge')),
    seesAllProjects(state) ? ' purges one URL, one project, or everything.' : ' purges one project.',
  ),
  strip('  You see how many responses it removes before you confirm.'),
];
