/** Commands about llmp itself: the introduction, `llmp help` and `llmp version`. */
import { command } from '../command.js';
import { EXIT } from '../../console/failure.js';
import type { View } from '../../console/table.js';
import { endOfSupport } from '../../config/node-support.js';
import { readBuildInfo, readVersion } from '../../config/version.js';

export const introductionCommand = command({
  path: [],
  summary: 'token-gated reverse proxy for LLM APIs',
  examples: [],
  options: {},
  async run({ output, shell }) {
    const [{ introduction }, { readableWidth }] = await Promise.all([import('./help.js'), import('./prose.js')]);
    output.text(introduction(readableWidth(shell.stdout.columns)));
    return EXIT.done;
  },
});

const help = command({
  path: ['help'],
  summary: 'show help for a command or a topic',
  examples: [
    ['help token generate', 'show help for a command'],
    ['help exit-codes', 'show a topic; `llmp help` lists all topics'],
  ],
  argument: {
    name: 'TOPIC',
    meaning: 'a command or a topic',
    required: false,
    many: true,
    completes: 'topic',
  },
  options: {},
  async run({ args, output, shell, helpOf }) {
    const [{ TOPICS }, { readableWidth, textOf }] = await Promise.all([import('./topics.js'), import('./prose.js')]);
    const topic = args.length === 1 ? TOPICS[args[0] ?? ''] : undefined;
    output.text(topic ? textOf(topic.blocks, readableWidth(shell.stdout.columns)) : await helpOf(args));
    return EXIT.done;
  },
});

const versionCommand = command({
  path: ['version'],
  summary: 'print the version',
  examples: [['version -v', 'also print the build, the commit, and the versions of Node.js and SQLite']],
  options: {},
  async run({ globals, output, shell }) {
    const info = versionInfo();
    if (output.format !== 'table') await output.one(info, versionView);
    else output.text(globals.verbose ? versionLines(shell.now()) : `llmp ${info.version}`);
    return EXIT.done;
  },
});

const versionView: View<VersionInfo> = {
  idOf: ({ version }) => version,
  fields: ['version', 'built_at', 'commit', 'node', 'sqlite', 'prices'],
  columns: [],
};

export const aboutCommands = [help, versionCommand];

// ---- what `llmp version` and `llmp --version` say

/** The parts of an installation that a report of a problem must name. Null if the build could not find it out. */
interface VersionInfo {
  version: string;
  built_at: string | null;
  commit: string | null;
  node: string;
  /** Of the native module in this installation. */
  sqlite: string | null;
  /** Date and SHA-256 of the shipped price list. */
  prices: string | null;
}

function versionInfo(): VersionInfo {
  const { builtAt, commit, sqlite, prices } = readBuildInfo();
  const list = prices && `${prices.date} ${prices.sha256}`;
  return { version: readVersion(), built_at: builtAt, commit, node: process.version, sqlite, prices: list };
}

/** For `-v`: the version, and a line for each other part. @param now in milliseconds since 1970. */
export function versionLines(now: number): string {
  const { version, built_at: builtAt, commit, node, sqlite, prices } = versionInfo();
  const release = node.replace(/^v/, '');
  const ended = endOfSupport(release, now);
  const parts = { build: builtAt, commit, 'Node.js': release, SQLite: sqlite, prices };
  const lines = Object.entries(parts).map(([name, part]) => `${name.padEnd(9)}${part ?? 'unknown'}`);
  if (ended) lines.push('', `${ended.problem}. ${ended.advice}.`);
  return [`llmp ${version}`, ...lines].join('\n');
}
