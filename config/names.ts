/** Detects unknown and misspelled names of settings. */
import { nearest } from './nearest.js';
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
    const [likely] = [name, name.replace(/^LLMP_/, '')].flatMap((it) => nearest(it.toUpperCase(), [...known]));
    return `${name} in ${where} is not a setting${likely === undefined ? '' : `; did you mean ${likely}?`}`;
  };
  const inEnvironment = Object.keys(env).filter((name) => name.startsWith('LLMP_') && isUnknown(name));
  const inFile = Object.keys(file?.values ?? {}).filter(isUnknown);
  return [
    ...inEnvironment.map((name) => warn(name, 'the environment')),
    ...inFile.map((name) => warn(name, file?.path ?? '')),
  ];
}
