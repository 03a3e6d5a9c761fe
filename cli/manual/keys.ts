/** Documents the keys and commands of the terminal UI, from their declarations. */
import { keyShown, type KeyScope } from '../../tui/keys/binding.js';
import { COMMANDS } from '../../tui/keys/command-line/commands.js';
import { bindingsOn } from '../../tui/keys/press.js';
import type { CustomKeys } from '../../tui/state/state.js';
import type { Block } from '../help/prose.js';

/** The documented places, in this order. Keys that work everywhere are listed in the first one only. */
const SPOTS: readonly (readonly [spot: KeyScope, title: string])[] = [
  ['overview', 'On every screen:'],
  ['tokens', 'On tokens:'],
  ['token', 'On the detail of a token:'],
  ['projects', 'On projects:'],
  ['project', 'On the detail of a project:'],
  ['audit', 'On audit:'],
  ['events', 'On events:'],
  ['cache', 'On cache:'],
  ['top', 'On top:'],
  ['dialog', 'In a dialog:'],
  ['chooser', 'In the list of choices of a field:'],
  ['waiting', 'While the provider checks a key:'],
  ['reveal', 'When a secret is shown:'],
  ['path', 'While entering the file for a secret:'],
  ['prompt', 'While entering a filter:'],
  ['command', 'On the command line:'],
  ['help', 'In help:'],
  ['search', 'While searching help:'],
  ['contexts', 'In the list of contexts:'],
  ['columns', 'While choosing columns:'],
  ['notice', 'In a notice:'],
];

export interface KeyRow {
  keys: string;
  meaning: string;
  /** Its name in the keys file. */
  action: string;
}

/** The keys of each place, without keys that were listed before with the same meaning. */
export function keyTables(customKeys: CustomKeys = new Map()): readonly { title: string; rows: readonly KeyRow[] }[] {
  const listed = new Set<string>();
  const tables = SPOTS.map(([spot, title]) => {
    const rows = bindingsOn(spot, { customKeys })
      .filter(({ keys }) => keys.length > 0)
      .map(({ keys, meaning, action }) => ({
        keys: keys.map((key) => keyShown(key, true)).join(', '),
        meaning,
        action,
      }))
      .filter(({ keys, meaning }) => !listed.has(`${keys} ${meaning}`) && listed.add(`${keys} ${meaning}`))
      .map((row) => ({ ...row, meaning: `${row.meaning.charAt(0).toUpperCase()}${row.meaning.slice(1)}.` }));
    return { title, rows };
  });
  return tables.filter(({ rows }) => rows.length > 0);
}

/** The section of the manual page about keys: a list for each place. */
export const keySection = (customKeys?: CustomKeys): Readonly<Record<string, readonly Block[]>> => ({
  KEYS: [customKeys ? 'These are your keys, with those of your `keys.toml`.' : DEFAULT_KEYS, ...keyBlocks(customKeys)],
});

const DEFAULT_KEYS =
  'These are the default keys. `keys.toml` can give actions other keys: `llmp man tui` then shows yours, and `llmp tui --print-keys` lists them.';

const keyBlocks = (customKeys?: CustomKeys): readonly Block[] =>
  keyTables(customKeys).flatMap(({ title, rows }): Block[] => [
    title,
    { entries: rows.map(({ keys, meaning }) => [keys, meaning] as const) },
  ]);

/** The commands of the command line, with their short names. */
export const commandBlock = (): Block => ({
  entries: COMMANDS.map(({ name, aliases, argument, meaning }) => [
    [name, ...aliases].map((word) => `:${word}`).join(', ') + (argument === null ? '' : ` ${argument}`),
    `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`,
  ]),
});
