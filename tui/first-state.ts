/** What the terminal UI starts with. */
import type { Connected, RunnerOptions } from './effects/runner.js';
import { begin } from './state/beginning.js';
import type { Look, State, Tab } from './state/state.js';
import type { Capabilities } from './terminal/capabilities.js';

export interface TuiOptions extends Pick<RunnerOptions, 'connect' | 'contexts'> {
  connected: Connected;
  tab: Tab;
  refreshMs: number;
}

export const lookOf = ({ hasSymbols, colours, hasMotion }: Capabilities): Look => ({
  ascii: !hasSymbols,
  hasColor: colours !== 'none',
  isStill: !hasMotion,
});

export const firstState = ({ connected, tab, refreshMs }: TuiOptions, look: Look, size: State['size']): State =>
  begin({ size, look, place: connected.place, nowMs: Date.now(), tab, refreshMs });
