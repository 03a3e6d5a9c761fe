/** Options of the terminal UI, and the state that it starts with. */
import type { Connected, RunnerOptions } from './effects/runner.js';
import { initialState } from './state/initial-state.js';
import type { Look, State, Tab } from './state/state.js';
import type { Settings } from './settings/settings.js';
import type { Renderer } from './renderer.js';
import type { Capabilities } from './terminal/capabilities.js';

export interface TuiOptions extends Pick<RunnerOptions, 'connect' | 'contexts' | 'save'> {
  connected: Connected;
  tab: Tab;
  refreshMs: number;
  settings: Settings;
  hasMouse: boolean;
  /** What ends with the terminal UI, such as `the demo`. */
  quitEnds: string | null;
  /** Folder for the history of the command line; undefined: none is stored. */
  stateFolder: string | undefined;
}

/** Loads Ink and React, which takes a tenth of a second, and the components. */
export async function openRenderer(): Promise<Renderer> {
  // React reads it when it is loaded. Otherwise it keeps a measurement of every frame, without limit.
  process.env.NODE_ENV = 'production';
  const { Renderer } = await import('./renderer.js');
  return new Renderer();
}

export const lookOf = ({ hasSymbols, colours, hasMotion }: Capabilities): Look => ({
  ascii: !hasSymbols,
  hasColor: colours !== 'none',
  isStill: !hasMotion,
});

export const stateAtStart = (
  { connected, tab, refreshMs, settings, quitEnds }: TuiOptions,
  look: Look,
  size: State['size'],
): State =>
  initialState({
    size,
    look,
    target: connected.target,
    nowMs: Date.now(),
    tab,
    refreshMs,
    quitEnds,
    ...settings,
    saved: connected.saved,
  });
