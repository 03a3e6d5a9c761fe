/**
 * The keys file, `keys.toml`: other keys for actions, in the groups of their names.
 *
 *     [tokens]
 *     revoke = "X"              # instead of x
 *     reactivate = ["a", "f3"]
 *     range = []                # no key; the action is still on the command line
 */
import { didYouMean } from '../../config/nearest.js';
import { isFixedKey, keyShown, type KeyScope, type NamedBinding, withCustomKeys } from '../keys/binding.js';
import { BINDINGS } from '../keys/press.js';
import { SCREEN_BINDINGS } from '../keys/screens.js';
import { isTextKey } from '../state/line.js';
import type { CustomKeys } from '../state/state.js';
import { keyOfName } from './key-syntax.js';
import { isProblem, isTable, readToml, type SettingsProblem } from './toml.js';

/** The keys of an action, as far as the keys file sets them. */
interface Entry {
  binding: NamedBinding;
  keys: readonly string[];
  line: number | null;
}

export interface KeysFile {
  keys: CustomKeys;
  /** In the order of the lines. The actions that they name have their default keys. */
  problems: readonly SettingsProblem[];
}

/** Scopes in which letters are text. */
const INPUTS: readonly KeyScope[] = ['dialog', 'chooser', 'search', 'path', 'prompt', 'command'];
/** Without a key for these, other actions could not be found. */
const NEEDED: readonly string[] = ['global.command', 'global.help', 'global.quit'];

const MAX_KEYS = 8;

export function readKeysFile(text: string): KeysFile {
  const read = readToml(text);
  if (isProblem(read)) return { keys: new Map(), problems: [read] };
  const problems: SettingsProblem[] = [];
  const entries: Entry[] = [];
  for (const [group, actions] of Object.entries(read.table)) {
    const line = read.lineOf(group);
    const why = whyNoGroup(group, actions);
    if (why !== null) problems.push({ line, message: why });
    else {
      for (const [name, value] of Object.entries(actions as object)) {
        const at = read.lineOf(group, name) ?? line;
        const entry = entryOf(`${group}.${name}`, value, at);
        if ('message' in entry) problems.push(entry);
        else entries.push(entry);
      }
    }
  }
  const { left, conflicts } = withoutConflicts(entries);
  const keys = new Map(left.map(({ binding, keys: own }) => [binding.action, own]));
  return { keys, problems: [...problems, ...conflicts].sort((one, other) => (one.line ?? 0) - (other.line ?? 0)) };
}

/** Those of screens first. */
const GROUPS = [...new Set([...SCREEN_BINDINGS, ...BINDINGS].map(({ action }) => groupOf(action)))];

function groupOf(action: string): string {
  return action.slice(0, action.indexOf('.'));
}

function whyNoGroup(group: string, actions: unknown): string | null {
  if (!GROUPS.includes(group)) {
    return `there is no group ${shown(group)}; ${didYouMean(group, GROUPS, `the groups are ${GROUPS.join(', ')}`)}`;
  }
  return isTable(actions) ? null : `${group} is a group of actions: write [${group}], and the actions below it`;
}

const LONGEST_SHOWN = 40;
const shown = (text: string) => JSON.stringify(text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text);

function entryOf(action: string, value: unknown, line: number | null): Entry | SettingsProblem {
  const group = groupOf(action);
  const binding = BINDINGS.find((it) => it.action === action);
  if (!binding) {
    const names = BINDINGS.flatMap((it) => (groupOf(it.action) === group ? it.action.slice(group.length + 1) : []));
    const name = action.slice(group.length + 1);
    const advice = didYouMean(name, names, 'llmp tui --print-keys lists all actions');
    return { line, message: `there is no action ${shown(name)} in [${group}]; ${advice}` };
  }
  const written: unknown[] = Array.isArray(value) ? value : [value];
  const keys: string[] = [];
  for (const one of written) {
    const found = typeof one === 'string' ? keyOfName(one) : { problem: 'write a key, or a list of keys, in quotes' };
    const why = 'problem' in found ? found.problem : whyNotFor(binding, found.key);
    if (why !== null) return { line, message: `${action}: ${why}` };
    if ('key' in found && !keys.includes(found.key)) keys.push(found.key);
  }
  if (keys.length > MAX_KEYS) return { line, message: `${action}: an action can have up to ${MAX_KEYS} keys` };
  if (keys.length === 0 && !mayBeWithoutKey(binding)) return { line, message: `${action}: this action needs a key` };
  return { binding, keys, line };
}

/** Only actions of screens are also on the command line. */
const mayBeWithoutKey = (binding: NamedBinding) =>
  SCREEN_BINDINGS.includes(binding) && !NEEDED.includes(binding.action);

function whyNotFor({ on }: NamedBinding, key: string): string | null {
  if (isFixedKey(key)) return `${keyShown(key, true)} always cancels or quits, and cannot have another meaning`;
  return isTextKey(key) && on.some((scope) => INPUTS.includes(scope))
    ? `${keyShown(key, true)} is text where you type; use a key such as ctrl+x or f5`
    : null;
}

/** Drops entries whose keys have another meaning in the same place, the later ones first, until none is left. */
function withoutConflicts(entries: readonly Entry[]): { left: readonly Entry[]; conflicts: SettingsProblem[] } {
  const conflicts: SettingsProblem[] = [];
  let left = entries;
  for (;;) {
    const conflict = firstConflict(left);
    if (!conflict) return { left, conflicts };
    conflicts.push({ line: conflict.entry.line, message: conflict.message });
    left = left.filter((entry) => entry !== conflict.entry);
  }
}

function firstConflict(entries: readonly Entry[]): { entry: Entry; message: string } | undefined {
  const byAction = new Map(entries.map((entry) => [entry.binding.action, entry]));
  const custom = new Map(entries.map(({ binding, keys }) => [binding.action, keys]));
  const owners = new Map<string, NamedBinding>();
  for (const binding of withCustomKeys(BINDINGS, custom)) {
    for (const { place, key } of binding.on.flatMap((on) =>
      binding.keys.map((it) => ({ place: `${on} ${it}`, key: it })),
    )) {
      const owner = owners.get(place) ?? binding;
      owners.set(place, owner);
      const entry = owner === binding ? undefined : later(byAction.get(owner.action), byAction.get(binding.action));
      if (!entry) continue;
      const other = entry.binding.action === owner.action ? binding : owner;
      const words = `${keyShown(key, true)} is the key of ${other.action}; give one of them another key`;
      return { entry, message: `${entry.binding.action}: ${words}` };
    }
  }
  return undefined;
}

const later = (one: Entry | undefined, other: Entry | undefined) =>
  one && other ? ((one.line ?? 0) > (other.line ?? 0) ? one : other) : (one ?? other);

/** The keys in effect, as a keys file. Actions with their default keys are comments, so that they follow later releases. */
export function keysFileText(custom: CustomKeys): string {
  const all = withCustomKeys(BINDINGS, custom);
  const groups = GROUPS.map((group) => {
    const actions = all.filter(({ action }) => groupOf(action) === group).filter(hasOwnKeys);
    const lines = actions.map(({ action, keys, meaning }) => {
      const own = keys.filter((key) => !isFixedKey(key)).map((key) => JSON.stringify(key));
      const line = `${action.slice(group.length + 1)} = [${own.join(', ')}]`;
      return `${custom.has(action) ? '' : '# '}${line}  # ${meaning}`;
    });
    return [`[${group}]`, ...lines].join('\n');
  });
  return `${groups.join('\n\n')}\n`;
}

/** Whether the action has keys that can be changed. */
const hasOwnKeys = ({ keys }: NamedBinding) => keys.length === 0 || !keys.every(isFixedKey);
