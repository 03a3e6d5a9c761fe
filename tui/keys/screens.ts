/** Keys of all screens. If a key has two bindings on a screen, the one specific to the screen comes first and wins. */
import type { NamedBinding } from './binding.js';
import { CACHE_BINDINGS } from './cache.js';
import { EVERYWHERE_BINDINGS, MOVING_BINDINGS } from './everywhere.js';
import { FEED_BINDINGS } from './feeds.js';
import { OVERVIEW_BINDINGS } from './overview.js';
import { PROJECT_BINDINGS } from './projects.js';
import { TOKEN_BINDINGS } from './tokens.js';
import { TOP_BINDINGS } from './top.js';
import { VIEW_BINDINGS } from './views.js';

export const SCREEN_BINDINGS: readonly NamedBinding[] = [
  ...OVERVIEW_BINDINGS,
  ...TOKEN_BINDINGS,
  ...PROJECT_BINDINGS,
  ...FEED_BINDINGS,
  ...CACHE_BINDINGS,
  ...TOP_BINDINGS,
  ...MOVING_BINDINGS,
  ...VIEW_BINDINGS,
  ...EVERYWHERE_BINDINGS,
];
