/** `llmp project …`: projects, each of which holds one upstream key. */
import type { ManagementClient } from '../../daemon/api/client.js';
import type { WireProject } from '../../daemon/api/contract.js';
import { type Argument, command } from '../command.js';
import { text } from '../option.js';
import { type Change, dryRun, onEachId, PROJECTS } from '../batch.js';
import { shellWord } from '../../console/escape.js';
import { EXIT, usage } from '../../console/failure.js';
import { checkedId, wholeIdOf } from '../ids.js';
import type { Input } from '../input.js';
import { limit, listed } from '../listing.js';
import { revokeTokensOf } from './revoke-all.js';
import { projectView, shortId } from '../../console/views.js';

const keyFile = text(
  '--key-file <FILE>',
  'a file that contains the upstream key (default: standard input, or a prompt)',
);

const create = command({
  path: ['manage', 'project', 'create'],
  summary: 'create a project',
  examples: [
    ['project create --name web --key-file key.txt', 'read the upstream key from key.txt'],
    ['project create --name web < key.txt', 'read the key from standard input'],
  ],
  options: {
    name: text('--name <TEXT>', 'a unique name of 1 to 100 characters'),
    keyFile,
  },
  async run({ options, input, output, connect }) {
    if (options.name === undefined) throw usage('a project needs a name', { advice: 'Add --name TEXT' });
    const key = await upstreamKey(options.keyFile, input);
    const client = await connect();
    const project = await client.createProject({ name: options.name, api_key: key });
    await output.one(project, projectView);
    output.note(
      `Created project ${project.name}. Issue a token for it: llmp token generate --project-id ${project.id}`,
    );
    return EXIT.done;
  },
});

/** Never a flag: `ps` and the shell's history would keep it. */
async function upstreamKey(file: string | undefined, input: Input): Promise<string> {
  if (file === undefined && !input.isPiped && !input.canAsk) {
    throw usage('no upstream key', { advice: 'Use --key-file FILE, or standard input' });
  }
  const key = await input.secretFrom(file ?? '-', 'the upstream key');
  if (key.trim() === '') throw usage('the upstream key is empty', { advice: 'Use --key-file FILE, or standard input' });
  return key;
}

const list = command({
  path: ['manage', 'project', 'list'],
  summary: 'list projects',
  examples: [['project list -o id', 'only their ids']],
  options: { limit },
  async run({ options, output, connect }) {
    const client = await connect();
    const projects = await listed((page) => client.projects(page), options.limit, output);
    await output.list(projects, projectView);
    if (projects.length === 0) output.note('No projects yet: llmp project create --name NAME --key-file FILE');
    return EXIT.done;
  },
});

const PROJECT = {
  noun: 'project',
  view: projectView,
  lookUp: (client: ManagementClient, id: string) => client.project(id),
} as const;

const get = command({
  path: ['manage', 'project', 'get'],
  summary: 'show projects',
  examples: [
    ['project get web', 'by its name'],
    ['project get 3fa91c2e', 'by the first characters of its ID'],
  ],
  argument: PROJECTS,
  options: {},
  run: (invocation) => onEachId(invocation, PROJECT),
});

const ONE_PROJECT: Argument = {
  name: 'PROJECT',
  meaning: 'project name, ID or unique prefix of 6 or more characters',
  required: true,
  many: false,
  completes: 'project',
};

const update = command({
  path: ['manage', 'project', 'update'],
  summary: 'rename a project',
  examples: [['project update web --name website', 'its id, tokens and key stay']],
  argument: ONE_PROJECT,
  options: { name: text('--name <TEXT>', 'a unique name of 1 to 100 characters') },
  async run({ args, options: { name }, output, connect }) {
    if (name === undefined) throw usage('nothing to change', { advice: 'Add --name TEXT' });
    const given = checkedId('project', args[0] ?? '');
    const client = await connect();
    const before = await client.project(await wholeIdOf(client, 'project', given));
    const after = await client.updateProject(before.id, { name });
    if (output.format !== 'table') await output.one(after, projectView);
    const undo = `llmp project update ${after.id} --name ${shellWord(before.name)}`;
    output.note(`Renamed ${shortId(after.id)} from ${before.name} to ${after.name}. Undo: ${undo}`);
    return EXIT.done;
  },
});

const setKey = command({
  path: ['manage', 'project', 'set-key'],
  summary: 'change the upstream key of a project',
  examples: [
    ['project set-key web --key-file key.txt', 'read the key from key.txt'],
    ['project set-key web < key.txt', 'read the key from standard input'],
  ],
  argument: ONE_PROJECT,
  options: { keyFile },
  async run({ args, options, input, output, connect }) {
    const given = checkedId('project', args[0] ?? '');
    const key = await upstreamKey(options.keyFile, input);
    const client = await connect();
    const project = await client.updateProject(await wholeIdOf(client, 'project', given), { api_key: key });
    if (output.format !== 'table') await output.one(project, projectView);
    // No undo: nobody can read the former key any more.
    output.note(`Changed the key of ${shortId(project.id)} (${project.name}). New requests use it.`);
    return EXIT.done;
  },
});

const revokeTokens = command({
  path: ['manage', 'project', 'revoke-tokens'],
  summary: 'revoke all tokens of a project',
  examples: [
    ['project revoke-tokens web --yes', 'tokens issued later are not affected'],
    ['project revoke-tokens web -n', 'only show which tokens would be revoked'],
  ],
  argument: ONE_PROJECT,
  options: { dryRun },
  run: (invocation) => revokeTokensOf(invocation.args[0] ?? '', invocation.options.dryRun === true, invocation),
});

const activate = command({
  path: ['manage', 'project', 'activate'],
  summary: 'activate projects: their tokens work again',
  examples: [['project activate web', 'its tokens work again, except expired and revoked ones']],
  argument: PROJECTS,
  options: { dryRun },
  run: (invocation) => onEachId(invocation, { ...PROJECT, change: activation }),
});

const deactivate = command({
  path: ['manage', 'project', 'deactivate'],
  summary: 'deactivate projects: their tokens are refused until you activate them again',
  examples: [['project deactivate web --reason "key leaked"', 'the reason goes into the audit record']],
  argument: PROJECTS,
  options: { dryRun },
  run: (invocation) => onEachId(invocation, { ...PROJECT, change: deactivation }),
});

const activation: Change<WireProject> = {
  verb: 'Activate',
  past: 'Activated',
  opposite: 'deactivate',
  make: (client, id) => client.updateProject(id, { is_active: true }),
  isMade: ({ is_active }) => is_active,
};

const deactivation: Change<WireProject> = {
  verb: 'Deactivate',
  past: 'Deactivated',
  opposite: 'activate',
  question: 'All of its tokens are refused until it is activated again.',
  make: (client, id) => client.updateProject(id, { is_active: false }),
  isMade: ({ is_active }) => !is_active,
};

export const projectCommands = [create, list, get, update, setKey, activate, deactivate, revokeTokens];
