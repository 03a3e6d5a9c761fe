/** Documents the keys of the terminal UI, from its key bindings. */
import { keyShown, type KeyScope } from '../../tui/keys/binding.js';
import { bindingsOn } from '../../tui/keys/press.js';
import type { Block } from '../help/prose.js';

/** The documented places, in this order. Keys that work everywhere are listed in the first one only. */
const SPOTS: readonly (readonly [spot: KeyScope, title: string])[] = [
  ['overview', 'On every screen:'],
  ['tokens', 'On tokens:'],
  ['token', 'On the detail of a token:'],
  ['projects', 'On projects:'],
  ['audit', 'On audit:'],
  ['events', 'On events:'],
  ['cache', 'On cache:'],
  ['dialog', 'In a dialog:'],
  ['reveal', 'When a secret is shown:'],
  ['path', 'While entering the file for a secret:'],
  ['prompt', 'While entering a filter:'],
  ['palette', 'In the command palette:'],
  ['help', 'In help:'],
  ['contexts', 'In the list of contexts:'],
  ['notice', 'In a notice:'],
];

/** A title and a list of keys for each place, without keys that were listed before with the same meaning. */
export function keyBlocks(): readonly Block[] {
  const listed = new Set<string>();
  return SPOTS.flatMap(([spot, title]): Block[] => {
    const entries = bindingsOn(spot)
      .map(({ keys, meaning }) => [keys.map((key) => keyShown(key, true)).join(', '), meaning] as const)
      .filter(([keys, meaning]) => !listed.has(`${keys} ${meaning}`) && listed.add(`${keys} ${meaning}`))
      .map(([keys, meaning]) => [keys, `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`] as const);
    return entries.length === 0 ? [] : [title, { entries }];
  });
}
