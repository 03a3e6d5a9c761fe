/** `llmp man`: shows manual pages, also if npm has not installed them for man(1). */
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../config/package-root.js';
import { command } from '../command.js';
import { visible } from '../../console/escape.js';
import { EXIT, quoted, usage } from '../../console/failure.js';
import { settingsFolder } from '../connection/contexts.js';
import { pagerIn } from '../pager.js';
import type { Shell } from '../shell.js';
import type { Tree, TreeFor } from './tree.js';

const FOLDER = join(packageRoot(), 'man');

/** @param treeFor resolves aliases: pages have the names of commands. */
export const manCommand = (treeFor: TreeFor) =>
  command({
    path: ['man'],
    runsUnbundled: true,
    summary: 'show a manual page',
    examples: [
      ['man', 'llmp(1): overview, commands and global options'],
      ['man token', 'llmp-token(1): the command `llmp token`'],
      ['man env', 'llmp.env(5): the settings of the daemon'],
      ['man 7', 'llmp(7): concepts, token states and design decisions'],
    ],
    argument: {
      name: 'PAGE',
      meaning: 'a command, `env` or `7` (default: llmp(1))',
      required: false,
      many: true,
      completes: 'page',
    },
    options: {},
    async run({ args, shell }) {
      const name = await pageFor(args, treeFor);
      await (name === TERMINAL_PAGE
        ? showTerminalPage(await treeFor(['tui']), shell)
        : showPage(join(FOLDER, name), shell));
      return EXIT.done;
    },
  });

/** The pages and the words that select them: `token` for `llmp-token.1`. */
export async function pageWords(): Promise<readonly { word: string; name: string }[]> {
  const names = await readdir(FOLDER);
  return names.map((name) => ({ word: name.replace(/^llmp[-.]|\.\d$/g, ''), name }));
}

/** @returns the name of the page's file. */
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
  throw usage(`there is no manual page ${quoted(given)}`, {
    why: suggestedValue(given, all),
    advice: `Pages: ${all.join(', ')}`,
  });
}

const TERMINAL_PAGE = 'llmp-tui.1';

/** Shows the keys in effect: the installed page has the default ones. */
async function showTerminalPage(tree: Tree, shell: Shell): Promise<void> {
  const { readKeys } = await import('../../tui/settings/settings.js');
  const { customKeys, problems } = await readKeys(settingsFolder(shell.env));
  for (const problem of problems) shell.stderr.write(`llmp: ${visible(problem)}\n`);
  if (customKeys.size === 0) {
    await showPage(join(FOLDER, TERMINAL_PAGE), shell);
    return;
  }
  const { terminalPage } = await import('../manual/pages.js');
  const folder = await mkdtemp(join(tmpdir(), 'llmp-man-'));
  try {
    const path = join(folder, TERMINAL_PAGE);
    await writeFile(path, terminalPage(tree, customKeys));
    await showPage(path, shell);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Shows a page with man or, if that fails, as plain text. On a terminal both use a pager. */
async function showPage(path: string, shell: Shell): Promise<void> {
  const { stdout } = shell;
  const isTerminal = stdout.isTTY === true;
  // Every man opens a path with a slash as a file; not every man has the option -l.
  const byMan = await man(path, shell.env, isTerminal ? 'inherit' : 'pipe');
  if (byMan.isDone) {
    stdout.write(byMan.output);
    return;
  }
  const [source, { plainPage }] = await Promise.all([readFile(path, 'utf8'), import('../manual/plain.js')]);
  const text = plainPage(source, stdout.columns);
  const pager = isTerminal ? pagerIn(shell.env) : null;
  if (!pager || !(await shell.page(pager, text))) stdout.write(text);
}

/** Runs man(1). @returns its output, unless it wrote to the terminal. */
async function man(path: string, env: NodeJS.ProcessEnv, out: 'inherit' | 'pipe') {
  const { withoutSecrets } = await import('../../config/settings.js');
  return new Promise<{ isDone: boolean; output: string }>((resolve) => {
    const child = spawn('man', [path], { env: withoutSecrets(env), stdio: ['inherit', out, 'ignore'] });
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (piece: string) => (output += piece));
    child.on('error', () => {
      resolve({ isDone: false, output: '' });
    });
    child.on('close', (exitCode) => {
      resolve({ isDone: exitCode === 0, output });
    });
  });
}
