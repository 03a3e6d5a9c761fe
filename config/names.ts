/** Detects unknown and misspelled names of settings. */
import type { EnvFile, Environment } from './sources.js';

/** Variables of the command line. The daemon does not use them, but they are not mistakes. */
const COMMAND_LINE = [
  'LLMP_SERVER',
  'LLMP_CONTEXT',
  'LLMP_PROJECT_ID',
  'LLMP_OUTPUT',
  'LLMP_CONFIG',
  'LLMP_ASCII',
] as const;

/**
 * Warns about unknown variables `LLMP_…` in the environment (its other variables may belong to other programs) and about all unknown
 * names in the env file, and suggests the nearest known name.
 */
export function unknownNames(env: Environment, file: EnvFile | undefined, settings: readonly string[]): string[] {
  const known = new Set<string>([...settings, ...settings.map((name) => `${name}_FILE`), ...COMMAND_LINE]);
  const isUnknown = (name: string) => !known.has(name);
  const warn = (name: string, where: string) => {
    const likely = nearest(name, [...known]) ?? nearest(name.replace(/^LLMP_/, ''), [...known]);
    return `${name} in ${where} is not a setting${likely === undefined ? '' : `; did you mean ${likely}?`}`;
  };
  const inEnvironment = Object.keys(env).filter((name) => name.startsWith('LLMP_') && isUnknown(name));
  const inFile = Object.keys(file?.values ?? {}).filter(isUnknown);
  return [
    ...inEnvironment.map((name) => warn(name, 'the environment')),
    ...inFile.map((name) => warn(name, file?.path ?? '')),
  ];
}

/** @returns the known name with the smallest edit distance; undefined if none is similar. */
function nearest(name: string, known: readonly string[]): string | undefined {
  const upper = name.toUpperCase();
  const farthest = Math.max(1, Math.floor(name.length / 3));
  const [best] = known
    .map((candidate) => ({ candidate, edits: editsBetween(upper, candidate) }))
    .filter(({ edits }) => edits <= farthest)
    .sort((one, other) => one.edits - other.edits);
  return best?.candidate;
}

/** The Levenshtein distance. Its cost is the product of the lengths. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [done, letter] of Array.from(from).entries()) {
    const next = [done + 1];
    for (const [index, other] of Array.from(to).entries()) {
      const replaced = (row[index] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
