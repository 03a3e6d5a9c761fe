/** A state as it is seen. */
import type { ReactNode } from 'react';
import { App } from './app.js';
import type { State } from './state/state.js';

export const frameOf = (state: State): ReactNode => <App state={state} />;
