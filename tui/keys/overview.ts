/** Keys of the overview. */
import * as overview from '../state/overview.js';
import { named } from './binding.js';

export const OVERVIEW_BINDINGS = named('overview', [
  {
    keys: ['enter', 'l', 'right'],
    on: ['overview'],
    label: 'open',
    meaning: 'open the selected token, or the tokens in the selected state',
    footer: 1,
    whyDisabled: overview.whyNotOpened,
    run: overview.openSelected,
  },
]);
