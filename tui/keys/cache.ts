/** Keys of the cache screen. */
import * as forms from '../state/forms.js';
import { whyNoChange } from '../state/state.js';
import { named } from './binding.js';

export const CACHE_BINDINGS = named('cache', [
  {
    keys: ['x'],
    on: ['cache'],
    label: 'purge',
    meaning: 'remove cached responses, after showing how many',
    footer: 1,
    whyDisabled: (state) =>
      state.cache.cache?.backend === 'off' ? 'The cache is off (HTTP_CACHE_ENABLED)' : whyNoChange(state),
    run: forms.purge,
  },
]);
