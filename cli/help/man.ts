/** `llmp man`: the manual, where npm has not put it into man's way as well. */
import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { command } from '../command.js';
import { EXIT, quoted, usage } from '../../console/failure.js';
import type { Shell } from '../shell.js';
import type { TreeFor } from './tree.js';

// The compiled file stands two folders below.
const FOLDER = join(import.meta.dirname, '../../../man');

/** @param treeFor for the aliases of commands, whose pages have their names. */
export const manCommand = (treeFor: TreeFor) =>
  command({
    path: ['man'],
    summary: 'show a page of the manual',
    examples: [
      ['man', 'what llmp is, its commands, the options of every command'],
      ['man token', 'llmp-token(1)'],
      ['man env', 'llmp.env(5), the settings of the daemon'],
      ['man 7', 'llmp(7), concepts, states and decisions'],
    ],
    argument: {
      name: 'PAGE',
      meaning: 'a command, env or 7 (default: llmp(1))',
      required: false,
      many: true,
      completes: 'page',
    },
    options: {},
    async run({ args, shell }) {
      const name = await pageFor(args, treeFor);
      await shown(join(FOLDER, name), shell);
      return EXIT.done;
    },
  });

/** Of `llmp-token.1` it is `token`. */
export async function pageWords(): Promise<readonly { word: string; name: string }[]> {
  const names = await readdir(FOLDER);
  return names.map((name) => ({ word: name.replace(/^llmp[-.]|\.\d$/g, ''), name }));
}

/** @returns the name of the file. */
async function pageFor(words: readonly string[], treeFor: TreeFor): Promise<string> {
  const [given] = words[0] === 'manage' ? words.slice(1) : words;
  if (given === undefined) return 'llmp.1';
  const [pages, tree] = await Promise.all([pageWords(), treeFor([])]);
  const [declared = given] = tree.resolved([given]) ?? [];
  const bare = declared.replace(/\((\d)\)$/, '.$1');
  const page = pages.find(({ word, name }) => [word, name, name.replace(/\.\d$/, '')].includes(bare));
  if (page) return page.name;
  const { suggestedValue } = await import('./suggest.js');
  const all = pages.map(({ word }) => word);
  throw usage(`there is no page ${quoted(given)}`, {
    why: suggestedValue(given, all),
    advice: `There are: ${all.join(', ')}`,
  });
}

/** With man, else as plain text; on a terminal either has a pager. */
async function shown(path: string, { stdout, env }: Shell): Promise<void> {
  const isTerminal = stdout.isTTY === true;
  // A path with a slash is a file to every man there is; -l is not.
  const byMan = await run('man', [path], env, isTerminal ? 'inherit' : 'pipe');
  if (byMan.isDone) {
    stdout.write(byMan.output);
    return;
  }
  const [source, { plainPage }] = await Promise.all([readFile(path, 'utf8'), import('../manual/plain.js')]);
  const text = plainPage(source, stdout.columns);
  const isPaged = isTerminal && (await run('sh', ['-c', env.PAGER || 'less'], env, 'inherit', text)).isDone;
  if (!isPaged) stdout.write(text);
}

/** @returns what it wrote, unless that went to the terminal. */
function run(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  out: 'inherit' | 'pipe',
  input?: string,
): Promise<{ isDone: boolean; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { env, stdio: [input === undefined ? 'inherit' : 'pipe', out, 'ignore'] });
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (piece: string) => (output += piece));
    child.on('error', () => {
      resolve({ isDone: false, output: '' });
    });
    child.on('close', (exitCode) => {
      resolve({ isDone: exitCode === 0, output });
    });
    // Whoever leaves the pager early does not read the rest.
    child.stdin?.on('error', () => undefined).end(input);
  });
}
