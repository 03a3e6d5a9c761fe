/** `llmp context …`: manages contexts, which are named daemons. */
import { resolve } from 'node:path';
import { oneOf } from '../../config/kinds.js';
import { confirmed } from '../batch.js';
import { type Argument, command } from '../command.js';
import { type Globals, OF_REQUESTS, optionsGiven } from '../globals.js';
import { flag, text, value } from '../option.js';
import {
  type Context,
  CONTEXT_COLORS,
  type Contexts,
  isContextName,
  readContexts,
  writeContexts,
} from '../connection/contexts.js';
import { EXIT, Failure, quoted, usage } from '../../console/failure.js';
import { checkedId } from '../ids.js';
import { serverOf } from '../connection/server.js';
import type { View } from '../../console/table.js';

const NAME: Argument = {
  name: 'NAME',
  meaning: 'the name of a context',
  required: true,
  many: false,
  completes: 'context',
};

interface Shown {
  name: string;
  is_current: boolean;
  server: string;
  token: string;
  project_id: string | null;
  protected: boolean;
  readonly: boolean;
  color: string | null;
}

const list = command({
  path: ['context', 'list'],
  summary: 'list contexts',
  ignores: OF_REQUESTS,
  examples: [['context list', 'list all contexts; * marks the current one']],
  options: {},
  async run({ shell, output }) {
    const { current, contexts } = await readContexts(shell.env);
    const all = Object.entries(contexts).map(([name, context]) => shown(name, context, current));
    await output.list(all, contextView);
    if (all.length === 0) output.note('No contexts. Add one: llmp context add NAME --server URL --token-file FILE');
    return EXIT.done;
  },
});

const use = command({
  path: ['context', 'use'],
  summary: 'set the current context',
  ignores: OF_REQUESTS,
  examples: [['context use prod', 'use the context prod for all further commands']],
  argument: NAME,
  options: {},
  async run({ args, shell, output }) {
    const [name = ''] = args;
    const before = await readContexts(shell.env);
    refuseUnknown(name, before);
    await writeContexts(shell.env, { ...before, current: name });
    const isBack = before.current !== null && before.current !== name;
    output.note(`Using ${name}.${isBack ? ` Undo: llmp context use ${before.current}` : ''}`);
    for (const variable of ['LLMP_SERVER', 'LLMP_CONTEXT']) {
      if (shell.env[variable]) output.warn(`${variable} is set and takes precedence`);
    }
    return EXIT.done;
  },
});

const add = command({
  path: ['context', 'add'],
  summary: 'add or update a context',
  ignores: ['context', 'timeout', 'reason'],
  examples: [
    [
      'context add prod --server https://llmp.example --token-file ~/.llmp-prod --protected',
      'add a context that asks for confirmation before changes',
    ],
    ["context add prod --token-command 'pass show llmp/prod'", 'read the management token from a password manager'],
    ['context add prod --readonly', 'refuse all changes, to prevent mistakes'],
  ],
  argument: NAME,
  options: {
    tokenFile: text(
      '--token-file <FILE>',
      'a file that contains the management token, readable by you only; --management-token-file is the same',
    ),
    tokenCommand: text('--token-command <COMMAND>', 'a shell command that prints the management token'),
    projectId: text('--project-id <ID>', 'default project for new tokens, by name or ID', 'project'),
    protected: flag('--protected', 'ask for confirmation before each change'),
    noProtected: flag('--no-protected', 'do not ask for confirmation'),
    readonly: flag('--readonly', 'refuse changes'),
    noReadonly: flag('--no-readonly', 'allow changes'),
    color: value(
      '--color <COLOR>',
      oneOf(...CONTEXT_COLORS),
      `color of the name in the terminal UI: ${CONTEXT_COLORS.join(', ')}`,
    ),
  },
  async run({ args, options, globals, shell, output }) {
    const [name = ''] = args;
    if (!isContextName(name)) {
      throw usage(`${quoted(name)} is not a valid context name`, { advice: 'Use letters, digits, - _ and .' });
    }
    const tokenFile = tokenFileOf(options.tokenFile, options.tokenCommand, globals);
    const before = await readContexts(shell.env);
    const known = before.contexts[name];
    const server = globals.server ?? known?.server;
    if (server === undefined) throw usage('no server given', { advice: 'Add --server URL' });
    serverOf(server);
    const context: Context = { ...known, server };
    if (tokenFile !== undefined) {
      context.tokenFile = tokenFile;
      delete context.tokenCommand;
      delete context.sessionId;
    }
    if (options.tokenCommand !== undefined) {
      context.tokenCommand = options.tokenCommand;
      delete context.tokenFile;
      delete context.sessionId;
    }
    if (options.projectId !== undefined) context.projectId = checkedId('project', options.projectId);
    if (options.protected !== undefined) context.protected = options.protected;
    if (options.readonly !== undefined) context.readonly = options.readonly;
    if (options.color !== undefined) context.color = options.color;

    const current = before.current ?? name;
    const path = await writeContexts(shell.env, { current, contexts: { ...before.contexts, [name]: context } });
    const hint = current === name ? 'It is the current context.' : `Use it: llmp context use ${name}`;
    output.note(`${known ? 'Updated' : 'Added'} ${name} in ${path}. ${hint}`);
    return EXIT.done;
  },
});

/** @throws {Failure} for more than one source of the management token, and for one that is not there the next time. */
function tokenFileOf(
  tokenFile: string | undefined,
  tokenCommand: string | undefined,
  globals: Globals,
): string | undefined {
  const { managementTokenFile } = globals;
  const sources = [
    ...(tokenFile === undefined ? [] : ['--token-file']),
    ...(tokenCommand === undefined ? [] : ['--token-command']),
    ...optionsGiven(['managementTokenFile', 'managementToken'], globals),
  ];
  if (sources.length > 1) throw usage(`${sources.join(' and ')} exclude each other`, { advice: 'Use one of them' });
  if (globals.managementToken !== undefined) {
    throw usage('a context contains no secrets', { advice: 'Use --token-file or --token-command' });
  }
  const file = tokenFile ?? managementTokenFile;
  if (file === '-')
    throw usage('a context cannot read standard input', { advice: 'Name a file, or use --token-command' });
  return file === undefined ? undefined : resolve(file);
}

const remove = command({
  path: ['context', 'remove'],
  summary: 'remove a context',
  ignores: OF_REQUESTS,
  examples: [['context remove staging', 'remove a context; its token file is not deleted']],
  argument: NAME,
  options: {},
  async run(invocation) {
    const { args, shell, output } = invocation;
    const [name = ''] = args;
    const { current, contexts } = await readContexts(shell.env);
    refuseUnknown(name, { current, contexts });
    if (contexts[name]?.protected) await confirmed(`Context ${name} is protected. Remove it?`, invocation);
    const others = Object.fromEntries(Object.entries(contexts).filter(([other]) => other !== name));
    await writeContexts(shell.env, { current: current === name ? null : current, contexts: others });
    output.note(`Removed ${name}.${current === name ? ' Choose another: llmp context use NAME' : ''}`);
    return EXIT.done;
  },
});

function refuseUnknown(name: string, { contexts }: Contexts): void {
  if (contexts[name]) return;
  const message = `there is no context ${quoted(name)}`;
  throw new Failure(EXIT.notFound, message, { code: 'not_found', advice: 'See: llmp context list' });
}

function shown(name: string, context: Context, current: string | null): Shown {
  const { server, tokenFile, tokenCommand, sessionId, projectId, color } = context;
  return {
    name,
    is_current: name === current,
    server,
    // The command itself is not shown: it may contain confidential names.
    token: tokenCommand !== undefined ? 'command' : sessionId !== undefined ? 'session' : (tokenFile ?? 'prompt'),
    project_id: projectId ?? null,
    protected: context.protected ?? false,
    readonly: context.readonly ?? false,
    color: color ?? null,
  };
}

const limits = ({ protected: isProtected, readonly: isReadonly }: Shown) =>
  [isProtected && 'protected', isReadonly && 'read-only'].filter(Boolean).join(', ');

const contextView: View<Shown> = {
  idOf: ({ name }) => name,
  fields: ['name', 'is_current', 'server', 'token', 'project_id', 'protected', 'readonly', 'color'],
  columns: [
    { title: '', rank: 0, show: ({ is_current: isCurrent }) => (isCurrent ? '*' : ' ') },
    { title: 'NAME', rank: 0, show: ({ name }) => name },
    { title: 'SERVER', rank: 1, show: ({ server }) => server, shrinks: true },
    { title: 'TOKEN', rank: 3, show: ({ token }) => token, shrinks: true },
    { title: 'PROJECT', rank: 2, show: ({ project_id: id }) => id ?? '', shrinks: true },
    { title: '', rank: 1, show: limits, tint: () => 'yellow' },
  ],
};

export const contextCommands = [list, use, add, remove];
