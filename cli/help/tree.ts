/** The tree of commands and groups, for help, man pages, completion and suggestions. */
import type { Command } from '../command.js';

/** A command or group below a path. */
export interface Word {
  word: string;
  alias?: string | undefined;
  summary: string;
}

/** Commands with a common first word, which are loaded together. */
export interface Group {
  summary: string;
  /** Whether it contains only commands for programs. */
  isHidden?: boolean;
  /** Called only if its word is on the command line, so that more commands do not slow down startup. */
  load: () => Promise<readonly Command[]>;
}

type Path = readonly string[];

/** All paths of a command: commands under `manage` also work without that word. */
export function pathsOf({ path }: Command): readonly Path[] {
  return path[0] === 'manage' ? [path, path.slice(1)] : [path];
}

/** @returns the tree with the commands that these words can name. */
export type TreeFor = (words: Path) => Promise<Tree>;

export class Tree {
  readonly #commands: readonly Command[];
  readonly #words: readonly (Word & { path: Path })[];

  /**
   * @param commands the loaded commands.
   * @param allGroups all groups, by the words that name them.
   */
  constructor(commands: readonly Command[], allGroups: Readonly<Record<string, Group>>) {
    this.#commands = commands.filter(({ isHidden }) => !isHidden);
    const groups = Object.entries(allGroups)
      .filter(([, { isHidden }]) => !isHidden)
      .map(([words, { summary }]) => ({ path: words.split(' '), summary }));
    const all = [
      ...this.#commands.flatMap((command) => pathsOf(command).map((path) => ({ ...command, path }))),
      ...groups,
    ];
    this.#words = all.map((it) => ({
      path: it.path,
      word: it.path.at(-1) ?? '',
      alias: 'alias' in it ? it.alias : undefined,
      summary: it.summary,
    }));
  }

  /** The words that can follow `path`, without duplicates. */
  wordsUnder(path: Path): Word[] {
    const under = this.#words.filter((it) => it.path.length === path.length + 1 && startsWith(it.path, path));
    return [...new Map(under.map((it) => [it.word, it])).values()];
  }

  /** The declared path for these words, with aliases replaced; undefined if there is no such command or group. */
  resolved(words: Path): Path | undefined {
    let path: Path = [];
    for (const given of words) {
      const next = this.wordsUnder(path).find(({ word, alias }) => given === word || given === alias);
      if (!next) return undefined;
      path = [...path, next.word];
    }
    return path;
  }

  commandAt(path: Path): Command | undefined {
    return this.#commands.find((command) => pathsOf(command).some((it) => isSame(it, path)));
  }

  summaryOf(path: Path): string {
    return this.#words.find((it) => isSame(it.path, path))?.summary ?? '';
  }

  /** All commands with their shortest paths. */
  get commands(): readonly { path: Path; command: Command }[] {
    return this.#commands.map((command) => ({ path: pathsOf(command).at(-1) ?? [], command }));
  }
}

const startsWith = (path: Path, beginning: Path) => beginning.every((word, at) => path[at] === word);
const isSame = (one: Path, other: Path) => one.length === other.length && startsWith(one, other);
