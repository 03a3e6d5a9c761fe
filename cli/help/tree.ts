/** The words of the command line, for whatever is made of them: help, man pages, completion, suggestions. */
import type { Command } from '../command.js';

/** One word that may come next. */
export interface Word {
  word: string;
  alias?: string | undefined;
  summary: string;
}

/** Commands that are loaded together. */
export interface Group {
  summary: string;
  /** Holds only what programs ask for. */
  isHidden?: boolean;
  /** Loaded when its word is on the line, so that starting costs the same however many commands there are. */
  load: () => Promise<readonly Command[]>;
}

type Path = readonly string[];

/** Every path a command goes by: what is under `manage` works without that word as well. */
export function pathsOf({ path }: Command): readonly Path[] {
  return path[0] === 'manage' ? [path, path.slice(1)] : [path];
}

/** @returns the tree with the commands that these words can possibly name. */
export type TreeFor = (words: Path) => Promise<Tree>;

export class Tree {
  readonly #commands: readonly Command[];
  readonly #words: readonly (Word & { path: Path })[];

  /**
   * @param commands those of the groups that are asked about.
   * @param allGroups by the words that lead to them.
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

  /** What may follow `path`, each word once. */
  wordsUnder(path: Path): Word[] {
    const under = this.#words.filter((it) => it.path.length === path.length + 1 && startsWith(it.path, path));
    return [...new Map(under.map((it) => [it.word, it])).values()];
  }

  /** The words as they are declared, aliases replaced; undefined unless they all lead somewhere. */
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

  /** Every command by its shortest path. */
  get commands(): readonly { path: Path; command: Command }[] {
    return this.#commands.map((command) => ({ path: pathsOf(command).at(-1) ?? [], command }));
  }
}

const startsWith = (path: Path, beginning: Path) => beginning.every((word, at) => path[at] === word);
const isSame = (one: Path, other: Path) => one.length === other.length && startsWith(one, other);
