/** The operator's settings for the terminal UI: the files `theme.toml` and `keys.toml` beside the contexts file. */
import { join } from 'node:path';
import { readOwnFile } from '../../console/own-file.js';
import { withoutSecrets } from '../../console/escape.js';
import type { ColorDepth } from '../parts/style.js';
import type { CustomKeys, Skins } from '../state/state.js';
import { readHistory } from './history.js';
import { sentenceOf } from '../../console/failure.js';
import { shippedSkins } from './theme-file.js';
import type { SettingsProblem } from './toml.js';

const KEYS_FILE = 'keys.toml';
const THEME_FILE = 'theme.toml';

export interface Settings {
  customKeys: CustomKeys;
  skins: Skins;
  /** Commands of earlier sessions, the latest last. */
  commandHistory: readonly string[];
  /** What is wrong with the files, one sentence each. Defaults apply there. */
  problems: readonly string[];
}

/** Folders of the operator's files; undefined: there is none. */
export interface Folders {
  /** That of the contexts file. */
  config: string | undefined;
  state: string | undefined;
}

/** Without a folder, or without files in it, the defaults apply. */
export async function readSettings({ config: folder, state }: Folders, depth: ColorDepth): Promise<Settings> {
  const keys = await readKeys(folder);
  const theme = await read(folder, THEME_FILE, async (text) => {
    const { readThemeFile } = await import('./theme-file.js');
    return readThemeFile(text, depth);
  });
  return {
    customKeys: keys.customKeys,
    commandHistory: await readHistory(state),
    skins: theme.read?.skins ?? shippedSkins(depth),
    problems: [...keys.problems, ...theme.problems],
  };
}

export async function readKeys(folder: string | undefined): Promise<Pick<Settings, 'customKeys' | 'problems'>> {
  const { read: file, problems } = await read(folder, KEYS_FILE, async (text) => {
    const { readKeysFile } = await import('./keys-file.js');
    return readKeysFile(text);
  });
  return { customKeys: file?.keys ?? new Map(), problems };
}

/** @param parse loads its parser only if there is a file. */
async function read<T extends { problems: readonly SettingsProblem[] }>(
  folder: string | undefined,
  name: string,
  parse: (text: string) => Promise<T>,
): Promise<{ read: T | null; problems: string[] }> {
  try {
    const text = folder === undefined ? undefined : await readOwnFile(join(folder, name), TRUST);
    if (text === undefined) return { read: null, problems: [] };
    const file = await parse(text);
    return { read: file, problems: file.problems.map((problem) => sentence(name, problem)) };
  } catch (error) {
    return { read: null, problems: [sentenceOf(error)] };
  }
}

const TRUST = { risk: 'its owner could change what your keys do', advice: 'Use a file that you own' };

const sentence = (name: string, { line, message }: SettingsProblem) =>
  withoutSecrets(`${name}${line === null ? '' : `, line ${line}`}: ${message}`, []);
