/** The words of the command line, for whatever is made of them: help, man pages, completion, suggestions. */
import type { Command } from '../command.js';
import { commandsFor, GROUPS, pathsOf } from '../commands.js';

/** One word that may come next. */
export interface Word {
  word: string;
  alias?: string | undefined;
  summary: string;
}

type Path = readonly string[];

export class Tree {
  readonly #commands: readonly Command[];
  readonly #words: readonly (Word & { path: Path })[];

  /** @param commands those of the groups that are asked about. */
  constructor(commands: readonly Command[]) {
    this.#commands = commands.filter(({ isHidden }) => !isHidden);
    const groups = Object.entries(GROUPS)
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

/** With every command there is: it loads them all. */
export async function wholeTree(): Promise<Tree> {
  return new Tree(await commandsFor(Object.keys(GROUPS)));
}

const startsWith = (path: Path, beginning: Path) => beginning.every((word, at) => path[at] === word);
const isSame = (one: Path, other: Path) => one.length === other.length && startsWith(one, other);
