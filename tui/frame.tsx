/** A state as it is seen. */
import { Text } from 'ink';
import type { ReactNode } from 'react';
import type { State } from './state/state.js';

export const frameOf = (state: State): ReactNode => <Text wrap="truncate">{state.place.server}</Text>;
