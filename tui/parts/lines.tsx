/** Lines in Ink. */
import { Text, Transform } from 'ink';
import type { Look } from '../state/state.js';
import { painted } from './roles.js';
import type { Strip } from './strip.js';

/**
 * One node of Ink for however many lines: they have their width already, so that there is nothing to measure or wrap. They come
 * by a transformation because Ink remembers every text that it ever measured, which is all that was ever shown.
 */
export function Lines({ of, look }: { of: readonly Strip[]; look: Look }) {
  if (of.length === 0) return null;
  const lines = of.map((line) => painted(line, look));
  return (
    <Transform transform={(_, row) => lines[row] ?? ''}>
      <Text>{placeholder(lines.length)}</Text>
    </Transform>
  );
}

const placeholder = (rows: number) => Array.from({ length: rows }, () => ' ').join('\n');
