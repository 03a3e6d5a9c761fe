/** Keys of all screens. If a key has two bindings on a screen, the one specific to the screen comes first and wins. */
import * as forms from '../state/forms.js';
import * as overview from '../state/overview.js';
import { whyNoChange } from '../state/state.js';
import { ACCESS_BINDINGS } from './access.js';
import { firstOf, named, type NamedBinding } from './binding.js';
import { EVERYWHERE_BINDINGS, MOVING_BINDINGS } from './everywhere.js';
import { FEED_BINDINGS, showEvents, whyNoEvents } from './feeds.js';
import { PROJECT_BINDINGS } from './projects.js';
import { TOKEN_BINDINGS } from './tokens.js';
import { TOP_BINDINGS } from './top.js';
import { VIEW_BINDINGS } from './views.js';

const OVERVIEW_BINDINGS = named('overview', [
  {
    keys: ['enter', 'l', 'right'],
    on: ['overview'],
    label: 'open',
    meaning: 'open what the selected row names: a token, a project, events or the tokens in a state',
    footer: 1,
    whyDisabled: firstOf(overview.whyNotOpened, (state) =>
      overview.eventsOfSelected(state) === null ? null : whyNoEvents(state),
    ),
    run: (state) => {
      const filter = overview.eventsOfSelected(state);
      return filter === null ? overview.openSelected(state) : showEvents(state, filter);
    },
  },
]);

const CACHE_BINDINGS = named('cache', [
  {
    keys: ['x'],
    on: ['cache'],
    label: 'purge',
    meaning: 'remove cached responses, after showing how many',
    needs: 'purgeCache',
    footer: 1,
    whyDisabled: (state) =>
      state.cache.cache?.backend === 'off' ? 'The cache is off (HTTP_CACHE_ENABLED)' : whyNoChange(state),
    run: forms.purge,
  },
]);

export const SCREEN_BINDINGS: readonly NamedBinding[] = [
  ...OVERVIEW_BINDINGS,
  ...TOKEN_BINDINGS,
  ...PROJECT_BINDINGS,
  ...FEED_BINDINGS,
  ...CACHE_BINDINGS,
  ...TOP_BINDINGS,
  ...ACCESS_BINDINGS,
  ...MOVING_BINDINGS,
  ...VIEW_BINDINGS,
  ...EVERYWHERE_BINDINGS,
];
