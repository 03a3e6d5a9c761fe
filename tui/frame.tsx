/** The screen as Ink has it. */
import { Text, Transform } from 'ink';
import type { ReactNode } from 'react';
import { linesOf } from './lines.js';
import type { State } from './state/state.js';

export const frameOf = (state: State): ReactNode => <Frame state={state} />;

/**
 * One node of Ink for however many lines: they have their width already, so that there is nothing to measure or wrap. They come
 * by a transformation because Ink remembers every text that it ever measured, which would be all that was ever shown.
 */
function Frame({ state }: { state: State }) {
  const lines = linesOf(state).join('\n');
  return (
    <Text>
      <Transform transform={() => lines}> </Transform>
    </Text>
  );
}
