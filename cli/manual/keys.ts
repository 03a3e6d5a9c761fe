/** The keys of the terminal UI, from the table that it acts by. */
import { keyShown, type Spot } from '../../tui/keys/binding.js';
import { bindingsOn } from '../../tui/keys/press.js';
import type { Block } from '../help/prose.js';

/** What holds on most screens is told once. */
const SPOTS: readonly (readonly [spot: Spot, title: string])[] = [
  ['overview', 'On every screen:'],
  ['tokens', 'On tokens:'],
  ['token', 'On the detail of a token:'],
  ['projects', 'On projects:'],
  ['audit', 'On audit:'],
  ['events', 'On events:'],
  ['cache', 'On cache:'],
  ['dialog', 'In a dialog:'],
  ['reveal', 'When a secret is shown:'],
  ['path', 'While the file for a secret is named:'],
  ['prompt', 'While a filter is typed:'],
  ['palette', 'In the command palette:'],
  ['help', 'In help:'],
  ['contexts', 'In the list of contexts:'],
];

/** A paragraph and a list of keys for each place; nothing is told twice that holds everywhere. */
export function keyBlocks(): readonly Block[] {
  const told = new Set<string>();
  return SPOTS.flatMap(([spot, title]): Block[] => {
    const entries = bindingsOn(spot)
      .map(({ keys, meaning }) => [keys.map((key) => keyShown(key, true)).join(', '), meaning] as const)
      .filter(([keys, meaning]) => !told.has(`${keys} ${meaning}`) && told.add(`${keys} ${meaning}`))
      .map(([keys, meaning]) => [keys, `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`] as const);
    return entries.length === 0 ? [] : [title, { entries }];
  });
}
