/** Lines in Ink. */
import { Text, Transform } from 'ink';
import type { Look } from '../state/state.js';
import { painted } from './roles.js';
import type { Strip } from './strip.js';

/**
 * One node of Ink for however many lines: they have their width already, so that there is nothing to measure or wrap. They come
 * by a transformation because Ink remembers every text that it ever measured, which would be all that was ever shown.
 */
export function Lines({ of, look }: { of: readonly Strip[]; look: Look }) {
  if (of.length === 0) return null;
  const lines = of.map((line) => painted(line, look)).join('\n');
  return (
    <Text>
      <Transform transform={() => lines}> </Transform>
    </Text>
  );
}
