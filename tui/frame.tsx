/** The screen as an Ink element. */
import { Text, Transform } from 'ink';
import type { ReactNode } from 'react';
import { linesOf } from './lines.js';
import type { State } from './state/state.js';

export const frameOf = (state: State): ReactNode => <Frame state={state} />;

/**
 * One Ink node for all lines. The lines already have their width, so Ink has nothing to measure or wrap. They are passed through a
 * transformation because Ink remembers every text that it ever measured, and so would keep everything that was ever shown.
 */
function Frame({ state }: { state: State }) {
  const lines = linesOf(state).join('\n');
  return (
    <Text>
      <Transform transform={() => lines}> </Transform>
    </Text>
  );
}
