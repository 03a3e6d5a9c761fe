/** Commands about llmp itself: the introduction, `llmp help` and `llmp version`. */
import { readVersion } from '../../config/version.js';
import { command } from '../command.js';
import { EXIT } from '../../console/failure.js';
import type { View } from '../../console/table.js';

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
  examples: [],
  options: {},
  async run({ output }) {
    const version = readVersion();
    if (output.format === 'table') output.text(`llmp ${version}`);
    else await output.one({ version, node: process.version }, versionView);
    return EXIT.done;
  },
});

const versionView: View<{ version: string; node: string }> = {
  idOf: ({ version }) => version,
  fields: ['version', 'node'],
  columns: [],
  details: {},
};

export const aboutCommands = [help, versionCommand];
