/** What llmp says about itself. */
import { readVersion } from '../config/version.js';
import { command } from './command.js';
import { EXIT, quoted, usage } from './failure.js';

const introduction =
  () => `llmp ${readVersion()}: a reverse proxy for LLM APIs. Clients get tokens that wither; the provider's key stays here.

  llmp daemon --env-file llmp.env                      run the proxy
  llmp project create --name web --key-file key.txt    keep an upstream key in a project
  llmp token generate --duration 48                    issue a token for two days

All commands: llmp help. One of them: llmp help token generate.`;

export const introductionCommand = command({
  path: [],
  summary: 'token-gated reverse proxy for LLM APIs',
  examples: [],
  options: {},
  run({ output }) {
    output.text(introduction());
    return Promise.resolve(EXIT.done);
  },
});

const help = command({
  path: ['help'],
  summary: 'explain a command',
  examples: [['help token generate', 'its options and examples']],
  argument: { name: 'TOPIC', meaning: 'the words of a command', required: false, many: true },
  options: {},
  run({ args, output, helpOf }) {
    const text = helpOf(args);
    if (text === undefined) throw usage(`no help for ${quoted(args.join(' '))}`, { advice: 'llmp help' });
    output.text(text.trimEnd());
    return Promise.resolve(EXIT.done);
  },
});

const versionCommand = command({
  path: ['version'],
  summary: 'print the version',
  examples: [],
  options: {},
  run({ output }) {
    output.text(`llmp ${readVersion()}`);
    return Promise.resolve(EXIT.done);
  },
});

export const aboutCommands = [help, versionCommand];
